// SPDX-License-Identifier: Apache-2.0
// Models that are unloaded because nobody uses them, and loaded again for the next request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "server/retry/retry_hint.h"
#include "tests/server/models/life_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The model is unloaded at once when nobody shares in it.
class IdleModelTest : public ModelLifeTest {
 protected:
  explicit IdleModelTest(absl::Duration first_retry = absl::Minutes(1))
      : ModelLifeTest(absl::Milliseconds(30), absl::Seconds(20), first_retry) {}

  void AwaitIdle(int64_t times = 1) { AwaitChange("tiny", ModelState::kIdle, times); }
  void AwaitFailed(int64_t times) { AwaitChange("tiny", ModelState::kIdleFailed, times); }
  void AwaitNeedsLoad() {
    const absl::Time limit = absl::Now() + kLimit;
    while (!registry_.NeedsLoad("tiny")) ASSERT_LT(absl::Now(), limit);
  }
  std::shared_ptr<EncoderModel> FindLoaded() {
    absl::StatusOr<std::shared_ptr<EncoderModel>> model = registry_.Find("tiny");
    while (!model.ok()) {  // it was idle already
      LoadAgain();
      model = registry_.Find("tiny");
    }
    return *std::move(model);
  }
  void LoadAgain() {
    std::promise<void> loaded;
    registry_.LoadIdle("tiny", [&](const absl::Status&) { loaded.set_value(); });
    loaded.get_future().get();
  }
  // As a request that has waited for the model.
  absl::StatusOr<std::shared_ptr<EncoderModel>> FindAfterLoad() {
    std::promise<absl::StatusOr<std::shared_ptr<EncoderModel>>> loaded;
    registry_.LoadIdle("tiny",
                       [&](const absl::Status&) { loaded.set_value(registry_.Find("tiny")); });
    return loaded.get_future().get();
  }
  void AwaitScrape(const testing::Matcher<const std::string&>& expected) {
    const absl::Time limit = absl::Now() + kLimit;
    while (!testing::Value(metrics_.Scrape(), expected)) ASSERT_LT(absl::Now(), limit);
  }
  int64_t Count(ModelState state) {
    const Changes all = changes();
    return std::count(all.begin(), all.end(), std::pair(std::string("tiny"), state));
  }
};

// What could not be loaded again is soon tried again.
class RetriedModelTest : public IdleModelTest {
 protected:
  RetriedModelTest() : IdleModelTest(absl::Milliseconds(1)) {}
};

TEST_F(IdleModelTest, AnIdleModelIsUnloadedAndTheNextRequestLoadsIt) {
  Start();
  AwaitIdle();
  EXPECT_TRUE(registry_.NeedsLoad("tiny"));
  EXPECT_FALSE(registry_.NeedsLoad("nobody"));
  const ModelStatus status = registry_.List()[0];
  EXPECT_EQ(status.model, nullptr);
  EXPECT_TRUE(status.Serves());
  EXPECT_EQ(registry_.Describe("tiny", "1")->facts->hidden, kTinyConfig.hidden);
  EXPECT_TRUE(registry_.Ready().ok());
  load_gate_.Close();  // so that it cannot be idle again before it is looked at
  std::future<void> loaded = std::async(std::launch::async, [this] { LoadAgain(); });
  load_gate_.AwaitWaiting(1);
  EXPECT_TRUE(registry_.NeedsLoad("tiny")) << "requests that come now wait too";
  load_gate_.Open();
  loaded.get();
  AwaitIdle(2);
  EXPECT_GE(loads_, 2);
}

TEST_F(IdleModelTest, AModelInUseIsNotIdle) {
  Start();
  const std::shared_ptr<EncoderModel> user = FindLoaded();
  const absl::Time end = absl::Now() + absl::Milliseconds(150);
  while (absl::Now() < end) ASSERT_EQ(registry_.List()[0].state, ModelState::kReady);
}

TEST_F(IdleModelTest, ARequestWaitsForNoOtherModelThanItsOwn) {
  Start();
  ASSERT_TRUE(Load("other").ok());
  AwaitChange("other", ModelState::kIdle);
  AwaitIdle();
  load_gate_.Close();
  using Loaded = absl::StatusOr<std::shared_ptr<EncoderModel>>;
  // Whoever has the future shares in the model: it does not become idle again.
  const auto load = [this](const std::string& name) {
    auto loaded = std::make_shared<std::promise<Loaded>>();
    registry_.LoadIdle(name, [this, name, loaded](const absl::Status&) {
      loaded->set_value(registry_.Find(name));
    });
    return loaded->get_future();
  };
  const auto is_loaded = [](const std::future<Loaded>& loaded) {
    return loaded.wait_for(absl::ToChronoSeconds(kLimit)) == std::future_status::ready;
  };
  const std::future<Loaded> first = load("tiny");
  load_gate_.AwaitWaiting(1);
  const std::future<Loaded> other = load("other");
  const std::future<Loaded> during = load("tiny");
  load_gate_.Let(1);
  EXPECT_TRUE(is_loaded(first));
  EXPECT_TRUE(is_loaded(during)) << "it came while the model was loaded";
  load_gate_.AwaitWaiting(1);
  EXPECT_TRUE(is_loaded(load("tiny"))) << "it was ready already";
  load_gate_.Open();
  EXPECT_TRUE(is_loaded(other));
}

// Its only request was cancelled, and its worker is still busy with it.
TEST_F(IdleModelTest, ALoadWaitsForTheMemoryOfAModelThatBecameIdle) {
  Start();
  std::shared_ptr<EncoderModel> model = FindLoaded();
  run_gate_.Close();
  std::future<absl::Status> request = Submit(model);
  run_gate_.AwaitWaiting(1);
  model->batcher->Cancel(submitted_);
  EXPECT_TRUE(absl::IsCancelled(request.get()));
  const std::weak_ptr<EncoderModel> idle = std::exchange(model, nullptr);
  AwaitFreed(idle);
  const int loads = loads_;
  std::future<absl::Status> load = std::async(std::launch::async, [this] { return Load("other"); });
  EXPECT_EQ(load.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(loads_, loads);
  run_gate_.Open();
  EXPECT_TRUE(load.get().ok());
}

TEST_F(IdleModelTest, AnIdleModelThatCannotBeLoadedSaysSo) {
  Start();
  AwaitIdle();
  Break();
  LoadAgain();
  EXPECT_FALSE(registry_.NeedsLoad("tiny")) << "not tried again at once";
  const absl::Status status = registry_.Find("tiny").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("config.json"));
  EXPECT_GT(RetryAfter(status), absl::Seconds(30));
  EXPECT_FALSE(Load().ok());
  EXPECT_LE(RetryAfter(registry_.Find("tiny").status()), absl::Minutes(1)) << "the longest pause";
}

TEST_F(IdleModelTest, AnIdleModelThatCannotBeLoadedIsNotReady) {
  Start();
  AwaitIdle();
  EXPECT_THAT(metrics_.Scrape(), HasSubstr("attendant_model_loaded_info{"));
  Break();
  LoadAgain();
  const ModelStatus status = registry_.List()[0];
  EXPECT_EQ(status.state, ModelState::kIdleFailed);
  EXPECT_FALSE(status.Serves());
  EXPECT_TRUE(status.LastLoadFailed());
  EXPECT_TRUE(absl::IsUnavailable(registry_.Describe("tiny").status()));
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("config.json"));
  EXPECT_TRUE(registry_.Live().ok()) << "a new process would fare no better";
  AwaitScrape(AllOf(HasSubstr("attendant_model_failed{model=\"tiny\"} 1"),
                    Not(HasSubstr("attendant_model_loaded_info{"))));
}

// Load balancers may send no request to what is not ready.
TEST_F(RetriedModelTest, AnIdleModelThatCannotBeLoadedIsTriedAgainWithoutRequests) {
  Start();
  AwaitIdle();
  Break();
  LoadAgain();
  AwaitFailed(3);
  EXPECT_FALSE(registry_.Ready().ok());
  load_gate_.Close();  // no load reads files that are being written
  load_gate_.AwaitWaiting(1);
  Mend();
  load_gate_.Open();
  AwaitChange("tiny", ModelState::kReady, 2);
  EXPECT_TRUE(registry_.Ready().ok());
  AwaitScrape(AllOf(HasSubstr("attendant_model_failed{model=\"tiny\"} 0"),
                    HasSubstr("attendant_model_loaded_info{")));
}

TEST_F(RetriedModelTest, EachRetryWaitsForTwiceAsLong) {
  Start();
  AwaitIdle();
  Break();
  const absl::Time start = SteadyNow();
  LoadAgain();
  AwaitFailed(9);  // eight retries, after 1, 2, 4, ... 128 ms
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(255));
}

TEST_F(RetriedModelTest, ARetryLoadsNoOtherVersion) {
  WriteTinyModel(directory_ / "two");
  SetVersions({{1, "tiny"}, {2, "two"}});
  Start();
  AwaitIdle(2);
  WriteFile(directory_ / "two/config.json", "{");
  LoadAgain();
  const absl::Time limit = absl::Now() + kLimit;
  while (registry_.List()[0].state != ModelState::kIdle) ASSERT_LT(absl::Now(), limit);
  const int64_t loaded = Count(ModelState::kReady);
  AwaitFailed(Count(ModelState::kIdleFailed) + 3);
  EXPECT_EQ(Count(ModelState::kReady), loaded);
}

// Memory comes free: its next requests may find it.
TEST_F(IdleModelTest, AnIdleModelForWhichMemoryIsShortStaysReady) {
  Start();
  AwaitIdle();
  highest_with_memory_ = 0;
  const absl::Status status = FindAfterLoad().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory is short"));
  EXPECT_GT(RetryAfter(status), absl::Seconds(30));
  EXPECT_FALSE(registry_.NeedsLoad("tiny")) << "not tried again at once";
  EXPECT_TRUE(registry_.List()[0].Serves());
  EXPECT_TRUE(registry_.Describe("tiny").ok());
  EXPECT_TRUE(registry_.Ready().ok());
  EXPECT_THAT(metrics_.Scrape(), AllOf(HasSubstr("attendant_model_failed{model=\"tiny\"} 0"),
                                       HasSubstr("attendant_model_loaded_info{")));
}

// It would take the memory of models that are asked for.
TEST_F(RetriedModelTest, AModelForWhichMemoryWasShortIsLoadedForRequestsOnly) {
  Start();
  AwaitIdle();
  highest_with_memory_ = 0;
  LoadAgain();
  AwaitNeedsLoad();
  highest_with_memory_ = 1;
  const int loads = loads_;
  ASSERT_TRUE(Load("other").ok());
  AwaitChange("other", ModelState::kIdle);
  EXPECT_EQ(loads_, loads + 1);
  LoadAgain();
  AwaitChange("tiny", ModelState::kReady, 2);
}

TEST_F(RetriedModelTest, AModelForWhichMemoryIsShortIsTriedAgainSoonEachTime) {
  Start();
  AwaitIdle();
  highest_with_memory_ = 0;
  absl::Status status;
  for (int i = 0; i < 12; ++i) {  // twice as long each time, the last pause would be 2 s
    AwaitNeedsLoad();
    status = FindAfterLoad().status();
  }
  EXPECT_EQ(RetryAfter(status), absl::Seconds(1));
}

TEST_F(IdleModelTest, AVersionForWhichMemoryIsShortLeavesItsRequestsToAnother) {
  SetVersions({{1, "tiny"}, {2, "tiny"}});
  Start();
  AwaitIdle(2);
  highest_with_memory_ = 1;
  const absl::StatusOr<std::shared_ptr<EncoderModel>> model = FindAfterLoad();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->version, 1);
}

// What its files cannot bring back stays.
TEST_F(IdleModelTest, AModelWhoseLastLoadFailedStaysLoaded) {
  WriteTinyModel(directory_ / "good");
  Start();
  std::shared_ptr<EncoderModel> user = FindLoaded();
  Break();
  EXPECT_FALSE(Load().ok());
  user.reset();
  SetVersions({{1, "good"}});
  ASSERT_TRUE(Load("other").ok());
  AwaitChange("other", ModelState::kIdle);  // it was used last
  EXPECT_EQ(registry_.List()[0].state, ModelState::kReady);
  ASSERT_TRUE(Load().ok());
  AwaitNeedsLoad();
}

TEST_F(IdleModelTest, AModelThatCouldNotBeLookedUpBecomesIdle) {
  Start();
  std::shared_ptr<EncoderModel> user = FindLoaded();
  SetFindError(absl::UnavailableError("stale handle"));
  EXPECT_FALSE(Load().ok());
  EXPECT_FALSE(registry_.List()[0].error.ok());
  user.reset();
  AwaitNeedsLoad();
  EXPECT_TRUE(registry_.List()[0].error.ok()) << "it would be that of a load";
  AwaitScrape(HasSubstr("attendant_model_failed{model=\"tiny\"} 0"));
  EXPECT_TRUE(registry_.Ready().ok());
}

TEST_F(IdleModelTest, ADrainEndsTheRequestsThatWaitForTheLoadInProgress) {
  Start();
  AwaitIdle();
  load_gate_.Close();
  std::promise<absl::Status> loaded;
  registry_.LoadIdle("tiny", [&](const absl::Status& status) { loaded.set_value(status); });
  load_gate_.AwaitWaiting(1);
  registry_.Drain(absl::InfiniteFuture());
  std::future<absl::Status> end = loaded.get_future();
  EXPECT_EQ(end.wait_for(absl::ToChronoSeconds(kLimit)), std::future_status::ready);
  load_gate_.Open();
  EXPECT_TRUE(absl::IsUnavailable(end.get()));
}

// Each time that it became idle, another instance would stay in memory.
TEST_F(IdleModelTest, AModelThatHasStalledStaysLoaded) {
  options_.batcher.stall_timeout = absl::Milliseconds(1);
  Start();
  std::shared_ptr<EncoderModel> model = FindLoaded();
  run_gate_.Close();
  std::future<absl::Status> request = Submit(model);
  while (registry_.List()[0].stalled_workers == 0) std::this_thread::yield();
  model->batcher->Cancel(submitted_);
  EXPECT_TRUE(absl::IsCancelled(request.get()));
  model.reset();
  const absl::Time end = absl::Now() + absl::Milliseconds(150);
  while (absl::Now() < end) ASSERT_EQ(registry_.List()[0].state, ModelState::kReady);
  run_gate_.Open();
  AwaitNeedsLoad();
}

// The time without requests begins when the model serves: a load may take longer than that time.
TEST_F(ModelLifeTest, TheTimeOfALoadIsNoIdleTime) {
  run_gate_.Close();
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  run_gate_.AwaitWaiting(1);  // at its warm-up
  const absl::Time warm = SteadyNow();
  run_gate_.Open();
  AwaitChange("tiny", ModelState::kReady);
  EXPECT_GE((*registry_.Find("tiny"))->last_used(), warm);
}

TEST_F(IdleModelTest, AVersionThatCannotBeLoadedAgainLeavesItsRequestsToAnother) {
  WriteTinyModel(directory_ / "two");
  SetVersions({{1, "tiny"}, {2, "two"}});
  Start();
  AwaitIdle(2);
  EXPECT_TRUE(registry_.NeedsLoad("tiny", "2"));
  EXPECT_FALSE(registry_.NeedsLoad("tiny", "3"));
  WriteFile(directory_ / "two/config.json", "{");
  absl::StatusOr<std::shared_ptr<EncoderModel>> model = FindAfterLoad();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->version, 1);
  EXPECT_FALSE(registry_.NeedsLoad("tiny"));
  EXPECT_FALSE(registry_.NeedsLoad("tiny", "1"));
  const absl::Status failed = registry_.Find("tiny", "2").status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("config.json"));
  model->reset();
  AwaitIdle(3);  // both, and version 1 again
}

TEST_F(IdleModelTest, AVersionThatFailedKeepsNoOtherLoaded) {
  SetVersions({{1, "tiny"}, {2, "none"}});
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChange("tiny", ModelState::kFailed);
  AwaitIdle();
  EXPECT_TRUE(registry_.NeedsLoad("tiny"));
  EXPECT_EQ(registry_.List()[1].state, ModelState::kFailed);
}

}  // namespace
}  // namespace attendant
