// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/retry/retry_hint.h"
#include "tests/server/models/registry/stub_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::Duration kFirstRetry = absl::Seconds(5);

class ModelTableTest : public testing::Test {
 protected:
  using Changes = std::vector<std::pair<std::string, ModelState>>;

  static ModelSource Source(const std::string& name, int64_t version = 1) {
    return {.name = name, .directory = absl::StrCat("/", name, "/", version), .version = version};
  }
  // "name/version" and state of each changed version.
  static Changes Changed(const TableChange& change) {
    Changes changes;
    for (const ModelStatus& status : change.changed) {
      changes.emplace_back(absl::StrCat(status.name, "/", status.version), status.state);
    }
    return changes;
  }
  std::vector<std::string> Order() const {
    std::vector<std::string> order;
    for (const ModelEntry& entry : table_.entries()) {
      order.push_back(absl::StrCat(entry.status.name, "/", entry.status.version));
    }
    return order;
  }
  const ModelEntry& At(const std::string& name, int64_t version = 1) const {
    return *table_.Find(name, version);
  }
  // A version that serves.
  std::shared_ptr<ServableModel> Load(const std::string& name, int64_t version = 1,
                                      const std::string& fingerprint = "") {
    table_.BeginLoad(Source(name, version));
    auto model = std::make_shared<StubModel>(name, version);
    table_.EndLoad(Source(name, version), fingerprint, model);
    return model;
  }
  TableChange Fail(const std::string& name, int64_t version = 1,
                   const absl::Status& why = absl::InternalError("broken")) {
    return table_.FailLoad(Source(name, version), why, idle_, now_);
  }
  // The version that a request without one gets.
  int64_t Chosen(const std::string& name) const {
    return (*table_.Choose(name, "", now_))->status.version;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  const IdlePolicy idle_{RegistryOptions{.first_retry = kFirstRetry}};
  ModelTable table_;
};

TEST_F(ModelTableTest, VersionsAreNeighboursAndAscend) {
  table_.AddAtStart(Source("b", 5));
  table_.AddUnloaded(Source("a", 1));
  for (int64_t version : {7, 2, 6}) table_.BeginLoad(Source("b", version));
  table_.BeginLoad(Source("a", 9));
  EXPECT_THAT(Order(), ElementsAre("b/2", "b/5", "b/6", "b/7", "a/1", "a/9"));
  EXPECT_EQ(At("b", 5).status.state, ModelState::kLoading);
  EXPECT_TRUE(At("b", 5).at_start);
  EXPECT_EQ(At("a").status.state, ModelState::kUnloaded);
  EXPECT_FALSE(At("a").at_start);
  EXPECT_EQ(table_.Find("b", 8), nullptr);
  EXPECT_EQ(table_.Find("c", 1), nullptr);
}

TEST_F(ModelTableTest, ALoadTellsOfItsStates) {
  EXPECT_THAT(Changed(table_.BeginLoad(Source("a"))),
              ElementsAre(Pair("a/1", ModelState::kLoading)));
  EXPECT_THAT(Changed(table_.BeginLoad(Source("a"))), IsEmpty()) << "it is loading already";
  const auto model = std::make_shared<StubModel>("a");
  const TableChange change = table_.EndLoad(Source("a"), "files", model);
  EXPECT_THAT(Changed(change), ElementsAre(Pair("a/1", ModelState::kReady)));
  EXPECT_EQ(change.changed[0].model, model);
  EXPECT_THAT(change.given_up, IsEmpty());
  EXPECT_EQ(At("a").fingerprint, "files");
  EXPECT_TRUE(At("a").Unavailable(now_).ok());
  EXPECT_TRUE(table_.AnyServes("a"));
  EXPECT_FALSE(table_.AnyServes("b"));
}

TEST_F(ModelTableTest, AModelServesWhileItIsReplaced) {
  const std::shared_ptr<ServableModel> old = Load("a", 1, "old files");
  ModelSource moved = Source("a");
  moved.directory = "/elsewhere";
  EXPECT_THAT(Changed(table_.BeginLoad(moved)), IsEmpty());
  EXPECT_EQ(At("a").source.directory, "/elsewhere");
  EXPECT_EQ(At("a").status.model, old);
  const auto model = std::make_shared<StubModel>("a");
  const TableChange change = table_.EndLoad(moved, "new files", model);
  EXPECT_THAT(change.given_up, ElementsAre(old));
  EXPECT_EQ(At("a").status.model, model);
  EXPECT_EQ(At("a").fingerprint, "new files");
}

TEST_F(ModelTableTest, AFailedLoadKeepsAModelFromBefore) {
  table_.AddAtStart(Source("a"));
  EXPECT_THAT(Changed(Fail("a")), ElementsAre(Pair("a/1", ModelState::kFailed)));
  EXPECT_FALSE(At("a").at_start) << "its first load has ended";
  EXPECT_EQ(At("a").Unavailable(now_), absl::UnavailableError("model 'a' failed to load: broken"));
  EXPECT_THAT(Changed(table_.BeginLoad(Source("a"))),
              ElementsAre(Pair("a/1", ModelState::kLoading)));
  EXPECT_FALSE(At("a").status.error.ok()) << "as long as no load has succeeded";
  const std::shared_ptr<ServableModel> model = Load("a");
  EXPECT_TRUE(At("a").status.error.ok());
  const TableChange change = Fail("a");
  EXPECT_THAT(Changed(change), ElementsAre(Pair("a/1", ModelState::kReady)));
  EXPECT_THAT(change.given_up, IsEmpty());
  EXPECT_EQ(At("a").status.model, model);
  EXPECT_EQ(At("a").status.error, absl::InternalError("broken"));
  EXPECT_THAT(Changed(Fail("b")), IsEmpty()) << "it is not there";
}

TEST_F(ModelTableTest, AVersionThatIsKeptHasNoErrorAnyMore) {
  Load("a");
  EXPECT_THAT(Changed(table_.KeepModel(Source("a"))), IsEmpty()) << "it has none";
  Fail("a");
  EXPECT_THAT(Changed(table_.KeepModel(Source("a"))), ElementsAre(Pair("a/1", ModelState::kReady)));
  EXPECT_TRUE(At("a").status.error.ok());
  table_.UnloadIdle({"a"});
  Fail("a");
  EXPECT_THAT(Changed(table_.KeepModel(Source("a"))), IsEmpty()) << "it does not serve";
  EXPECT_FALSE(At("a").status.error.ok());
  EXPECT_THAT(Changed(table_.KeepModel(Source("b"))), IsEmpty()) << "it is not there";
}

TEST_F(ModelTableTest, ALostModelIsGivenUpByTheNextLoad) {
  const std::shared_ptr<ServableModel> model = Load("a");
  const absl::Status why = absl::InternalError("the device is lost");
  EXPECT_THAT(Changed(table_.Lose(model.get(), why)), ElementsAre(Pair("a/1", ModelState::kLost)));
  EXPECT_THAT(Changed(table_.Lose(model.get(), why)), IsEmpty()) << "it is known";
  EXPECT_EQ(At("a").status.model, model) << "its requests are not answered yet";
  EXPECT_FALSE(table_.AnyServes("a"));
  table_.BeginLoad(Source("a"));
  EXPECT_THAT(Fail("a").given_up, ElementsAre(model));
  EXPECT_THAT(Changed(table_.Lose(model.get(), why)), IsEmpty()) << "it is given up";
}

TEST_F(ModelTableTest, StalledWorkersAreThoseOfTheModelThatServes) {
  const std::shared_ptr<ServableModel> old = Load("a");
  const TableChange change = table_.SetStalled(old.get(), 2);
  EXPECT_EQ(change.changed.at(0).stalled_workers, 2);
  EXPECT_EQ(At("a").status.stalled_workers, 2);
  Load("a");
  EXPECT_EQ(At("a").status.stalled_workers, 0);
  EXPECT_THAT(Changed(table_.SetStalled(old.get(), 3)), IsEmpty());
  table_.SetStalled(At("a").status.model.get(), 1);
  table_.Unload("a", ModelState::kUnloading);
  EXPECT_EQ(At("a").status.stalled_workers, 0);
}

TEST_F(ModelTableTest, ARequestGetsTheHighestVersionThatServes) {
  for (int64_t version : {1, 2, 3}) Load("a", version);
  EXPECT_EQ(Chosen("a"), 3);
  table_.Lose(At("a", 3).status.model.get(), absl::InternalError("lost"));
  EXPECT_EQ(Chosen("a"), 2);
  EXPECT_EQ((*table_.Choose("a", "3", now_))->status.state, ModelState::kLost);
  EXPECT_EQ(table_.Choose("a", "03", now_).status(),
            absl::NotFoundError("model 'a' has no version '03', only 1, 2, 3"));
  EXPECT_EQ(table_.Choose("b", "", now_).status(), absl::NotFoundError("there is no model 'b'"));
}

TEST_F(ModelTableTest, AnIdleVersionThatFailedRanksBetweenTheOthers) {
  for (int64_t version : {1, 2}) Load("a", version);
  table_.UnloadIdle({"a"});
  EXPECT_EQ(Chosen("a"), 2) << "idle counts as serving";
  Fail("a", 2, absl::ResourceExhaustedError("memory is short"));
  EXPECT_EQ(At("a", 2).status.state, ModelState::kIdle);
  EXPECT_EQ(Chosen("a"), 1) << "until the next try is due";
  now_ += kFirstRetry;
  EXPECT_EQ(Chosen("a"), 2);
  Fail("a", 2);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Chosen("a"), 1) << "it is due, but it does not serve";
  table_.BeginLoad(Source("a", 3));
  Fail("a", 3);
  Fail("a", 1);
  EXPECT_EQ(Chosen("a"), 2) << "idle before failed";
}

TEST_F(ModelTableTest, AnIdleVersionThatFailedSaysWhenToTryAgain) {
  Load("a");
  EXPECT_FALSE(table_.AnyIdle());
  const TableChange change = table_.UnloadIdle({"a"});
  EXPECT_THAT(Changed(change), ElementsAre(Pair("a/1", ModelState::kIdle)));
  EXPECT_EQ(change.given_up.size(), 1u);
  EXPECT_TRUE(table_.AnyIdle());
  EXPECT_TRUE(table_.AnyNeedsLoad("a", now_));
  EXPECT_FALSE(table_.AnyNeedsLoad("b", now_));
  EXPECT_THAT(Changed(Fail("a")), ElementsAre(Pair("a/1", ModelState::kIdleFailed)));
  EXPECT_FALSE(table_.AnyNeedsLoad("a", now_));
  EXPECT_EQ(RetryAfter(At("a").Unavailable(now_)), kFirstRetry);
  now_ += kFirstRetry - absl::Milliseconds(1);
  EXPECT_FALSE(table_.AnyNeedsLoad("a", now_));
  EXPECT_EQ(RetryAfter(At("a").Unavailable(now_)), absl::Seconds(1)) << "at least";
  now_ += absl::Milliseconds(1);
  EXPECT_TRUE(table_.AnyNeedsLoad("a", now_));
  Load("a");
  EXPECT_FALSE(table_.AnyNeedsLoad("a", now_));
}

TEST_F(ModelTableTest, AnUnloadConcernsAllVersionsOfItsModel) {
  const std::shared_ptr<ServableModel> one = Load("a", 1);
  const std::shared_ptr<ServableModel> two = Load("a", 2);
  const std::shared_ptr<ServableModel> other = Load("b");
  table_.AddBuiltIn(std::make_shared<StubModel>("built-in"));
  const TableChange change = table_.Unload("a", ModelState::kUnloading);
  EXPECT_THAT(Changed(change), ElementsAre(Pair("a/1", ModelState::kUnloading),
                                           Pair("a/2", ModelState::kUnloading)));
  EXPECT_THAT(change.given_up, ElementsAre(one, two));
  EXPECT_EQ(At("b").status.model, other);
  EXPECT_THAT(Changed(table_.Unload("built-in", ModelState::kUnloading)), IsEmpty());
  EXPECT_THAT(Changed(table_.Unload("nobody", ModelState::kUnloading)), IsEmpty());
}

TEST_F(ModelTableTest, VersionsThatAreNotKeptLeave) {
  for (int64_t version : {1, 2, 3}) Load("a", version);
  Load("b");
  const std::shared_ptr<ServableModel> one = At("a", 1).status.model;
  table_.Lose(At("a", 3).status.model.get(), absl::InternalError("lost"));
  const TableChange change = table_.RemoveOthers("a", {Source("a", 2), Source("a", 4)});
  EXPECT_THAT(Changed(change),
              ElementsAre(Pair("a/1", ModelState::kUnloaded), Pair("a/3", ModelState::kUnloaded)));
  EXPECT_EQ(change.given_up.size(), 2u);
  EXPECT_EQ(change.given_up[0], one);
  EXPECT_THAT(Order(), ElementsAre("a/2", "b/1"));
}

TEST_F(ModelTableTest, OnlyReadyVersionsOfTheGivenModelsTurnIdle) {
  for (int64_t version : {1, 2, 3}) Load("a", version);
  table_.Lose(At("a", 2).status.model.get(), absl::InternalError("lost"));
  Load("b");
  Load("c");
  table_.AddBuiltIn(std::make_shared<StubModel>("built-in"));
  EXPECT_THAT(Changed(table_.UnloadIdle({"a", "c", "built-in"})),
              ElementsAre(Pair("a/1", ModelState::kIdle), Pair("a/3", ModelState::kIdle),
                          Pair("c/1", ModelState::kIdle)));
  EXPECT_EQ(At("b").status.state, ModelState::kReady);
}

TEST_F(ModelTableTest, SourcesAreThoseOfTheVersionsThatAreMeant) {
  for (int64_t version : {1, 2, 3}) Load("a", version);
  Load("b", 3);
  const std::vector<ModelSource> sources =
      table_.Sources("a", [](const ModelEntry& entry) { return entry.status.version != 2; });
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].directory, "/a/1");
  EXPECT_EQ(sources[1].directory, "/a/3");
}

TEST_F(ModelTableTest, ADrainEndsAllChanges) {
  const std::shared_ptr<ServableModel> ready = Load("ready");
  const std::shared_ptr<ServableModel> lost = Load("lost");
  table_.Lose(lost.get(), absl::InternalError("lost"));
  table_.BeginLoad(Source("loading"));
  table_.AddUnloaded(Source("unloaded"));
  const auto built_in = std::make_shared<StubModel>("built-in");
  table_.AddBuiltIn(built_in);
  EXPECT_FALSE(table_.draining());
  EXPECT_THAT(
      Changed(table_.StartDraining()),
      ElementsAre(Pair("ready/1", ModelState::kDraining), Pair("loading/1", ModelState::kDraining)))
      << "no listener knows what is built in";
  EXPECT_TRUE(table_.draining());
  EXPECT_EQ(At("built-in").status.state, ModelState::kDraining);
  EXPECT_EQ(At("lost").status.state, ModelState::kLost);
  EXPECT_THAT(table_.LoadedModels(), ElementsAre(ready, lost, built_in));
  EXPECT_THAT(Changed(table_.StartDraining()), IsEmpty());

  EXPECT_THAT(Changed(table_.BeginLoad(Source("unloaded"))), IsEmpty());
  EXPECT_THAT(Changed(table_.BeginLoad(Source("new"))), IsEmpty());
  EXPECT_THAT(Changed(table_.EndLoad(Source("loading"), "", std::make_shared<StubModel>("x"))),
              IsEmpty());
  EXPECT_THAT(Changed(Fail("loading")), IsEmpty());
  EXPECT_THAT(Changed(table_.Unload("ready", ModelState::kUnloading)), IsEmpty());
  EXPECT_THAT(Changed(table_.RemoveOthers("ready", {})), IsEmpty());
  EXPECT_THAT(Changed(table_.UnloadIdle({"ready"})), IsEmpty());
  EXPECT_THAT(Changed(table_.SetStalled(ready.get(), 1)), IsEmpty());
  EXPECT_THAT(Changed(table_.Lose(ready.get(), absl::InternalError("lost"))), IsEmpty());
  EXPECT_THAT(Order(), ElementsAre("ready/1", "lost/1", "loading/1", "unloaded/1", "built-in/1"));

  EXPECT_THAT(table_.Clear().given_up, ElementsAre(ready, lost, built_in));
  EXPECT_THAT(Order(), IsEmpty());
}

}  // namespace
}  // namespace attendant
