// SPDX-License-Identifier: Apache-2.0
// Loads of a model of which some versions have not changed since their load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/models/life_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Versions 1 and 2 of "tiny", both loaded.
class ModelVersionsTest : public ModelLifeTest {
 protected:
  explicit ModelVersionsTest(ModelControl control = ModelControl::kExplicit,
                             absl::Duration unload_idle = absl::InfiniteDuration())
      : ModelLifeTest(unload_idle, absl::Seconds(20), absl::Minutes(1), control) {
    for (const char* folder : {"two", "three"}) WriteTinyModel(directory_ / folder);
    SetVersions({{1, "tiny"}, {2, "two"}});
    for (const int64_t version : {1, 2, 3}) SetFingerprint(version, "first");
    registry_.SetModels({{"tiny", directory_ / "tiny", 1}, {"tiny", directory_ / "two", 2}});
    registry_.StartLoading();
    AwaitChange("tiny", ModelState::kReady, 2);
  }

  // Differs between all instances; 0: the version does not serve.
  int64_t LifeOf(int64_t version) {
    const auto model = registry_.Find("tiny", absl::StrCat(version));
    return model.ok() ? (*model)->life_id : 0;
  }
};

TEST_F(ModelVersionsTest, ANewVersionIsLoadedAloneAndServes) {
  const int64_t first = LifeOf(1), second = LifeOf(2);
  SetVersions({{1, "tiny"}, {2, "two"}, {3, "three"}});
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 3);
  EXPECT_EQ(LifeOf(1), first);
  EXPECT_EQ(LifeOf(2), second);
  EXPECT_EQ((*registry_.Find("tiny"))->version, 3);
}

TEST_F(ModelVersionsTest, AChangedVersionIsLoadedAlone) {
  const int64_t first = LifeOf(1), second = LifeOf(2);
  SetFingerprint(2, "second");
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 3);
  EXPECT_EQ(LifeOf(1), first);
  EXPECT_NE(LifeOf(2), second);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 3) << "it has not changed again";
}

TEST_F(ModelVersionsTest, ARemovedVersionIsUnloadedAlone) {
  const int64_t second = LifeOf(2);
  SetVersions({{2, "two"}});
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 2);
  EXPECT_EQ(LifeOf(1), 0);
  EXPECT_EQ(LifeOf(2), second);
}

TEST_F(ModelVersionsTest, AVersionThatFailsDisturbsNoOtherAndIsTriedAgain) {
  const int64_t first = LifeOf(1), second = LifeOf(2);
  std::filesystem::remove(directory_ / "three/config.json");
  SetVersions({{1, "tiny"}, {2, "two"}, {3, "three"}});
  for (int loads = 3; loads <= 4; ++loads) {
    EXPECT_FALSE(Load().ok());
    EXPECT_EQ(loads_, loads) << "only version 3 is loaded";
    EXPECT_EQ(registry_.List()[2].state, ModelState::kFailed);
    EXPECT_EQ(LifeOf(1), first);
    EXPECT_EQ(LifeOf(2), second);
  }
  WriteTinyModel(directory_ / "three");
  EXPECT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 5);
  EXPECT_EQ((*registry_.Find("tiny"))->version, 3);
}

// Its former instance serves.
TEST_F(ModelVersionsTest, AVersionThatWasNotLoadedAnewIsTriedAgainThoughItIsAsBefore) {
  const int64_t first = LifeOf(1);
  Break();
  SetFingerprint(1, "broken");
  EXPECT_FALSE(Load().ok());
  EXPECT_EQ(LifeOf(1), first);
  Mend();
  SetFingerprint(1, "first");
  EXPECT_TRUE(Load().ok());
  EXPECT_NE(LifeOf(1), first);
  EXPECT_THAT(metrics_.Scrape(), HasSubstr("attendant_model_failed{model=\"tiny\"} 0\n"));
  EXPECT_EQ(loads_, 4);
}

TEST_F(ModelVersionsTest, AModelThatCouldNotBeLookedUpIsNotLoadedAnew) {
  const int64_t first = LifeOf(1), second = LifeOf(2);
  SetFindError(absl::UnavailableError("stale handle"));
  EXPECT_TRUE(absl::IsUnavailable(Load()));
  EXPECT_TRUE(absl::IsUnavailable(registry_.List()[0].error));
  SetFindError(absl::OkStatus());
  EXPECT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 2);
  EXPECT_EQ(LifeOf(1), first);
  EXPECT_EQ(LifeOf(2), second);
  for (const ModelStatus& version : registry_.List()) EXPECT_TRUE(version.error.ok());
  EXPECT_THAT(metrics_.Scrape(), HasSubstr("attendant_model_failed{model=\"tiny\"} 0\n"));
  const size_t heard = changes().size();
  EXPECT_TRUE(Load().ok());
  EXPECT_EQ(changes().size(), heard) << "nothing has changed since";
}

// A later error of another kind hides no failed load.
TEST_F(ModelVersionsTest, AVersionThatWasNotLoadedAnewIsTriedAgainAfterALookUpThatFailed) {
  const int64_t first = LifeOf(1), second = LifeOf(2);
  Break();
  SetFingerprint(1, "broken");
  EXPECT_FALSE(Load().ok());
  SetFindError(absl::UnavailableError("stale handle"));
  EXPECT_FALSE(Load().ok());
  SetFindError(absl::OkStatus());
  Mend();
  SetFingerprint(1, "first");
  EXPECT_TRUE(Load().ok());
  EXPECT_NE(LifeOf(1), first);
  EXPECT_EQ(LifeOf(2), second);
  EXPECT_EQ(loads_, 4);
}

TEST_F(ModelVersionsTest, AVersionWhoseFilesAreNotKnownIsLoadedAnew) {
  for (const int64_t version : {1, 2}) SetFingerprint(version, "");
  for (int loads = 4; loads <= 6; loads += 2) {
    ASSERT_TRUE(Load().ok());
    EXPECT_EQ(loads_, loads);
  }
}

TEST_F(ModelVersionsTest, AChangeDuringALoadIsLoadedNext) {
  SetFingerprint(1, "second");
  load_gate_.Close();
  std::future<absl::Status> load = std::async(std::launch::async, [this] { return Load(); });
  load_gate_.AwaitWaiting(1);
  SetFingerprint(1, "third");
  load_gate_.Open();
  ASSERT_TRUE(load.get().ok());
  EXPECT_EQ(loads_, 3);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 4);
}

TEST_F(ModelVersionsTest, AVersionThatDoesNotServeIsLoaded) {
  ASSERT_TRUE(Unload().ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 4) << "both were unloaded";
  run_gate_.Lose();
  const std::shared_ptr<EncoderModel> model = *registry_.Find("tiny", "1");
  for (int worker = 1; worker <= 2; ++worker) {
    EXPECT_TRUE(absl::IsUnavailable(Submit(model).get()));
  }
  AwaitChange("tiny", ModelState::kLost);
  EXPECT_FALSE(Load().ok());
  EXPECT_EQ(loads_, 5) << "version 1 is lost";
}

TEST_F(ModelVersionsTest, AVersionThatHasStalledIsLoaded) {
  options_.batcher.stall_timeout = absl::Milliseconds(1);
  SetFingerprint(1, "second");
  ASSERT_TRUE(Load().ok());
  run_gate_.Close();
  std::future<absl::Status> request = Submit(*registry_.Find("tiny", "1"));
  AwaitChange("tiny", ModelState::kReady, 4);
  load_gate_.Close();
  std::future<absl::Status> load = std::async(std::launch::async, [this] { return Load(); });
  load_gate_.AwaitWaiting(1);
  run_gate_.Open();  // the warm-up passes it too
  load_gate_.Open();
  EXPECT_TRUE(load.get().ok());
  EXPECT_TRUE(request.get().ok());
  EXPECT_EQ(loads_, 4);
}

class IdleVersionsTest : public ModelVersionsTest {
 protected:
  explicit IdleVersionsTest(ModelControl control = ModelControl::kExplicit)
      : ModelVersionsTest(control, absl::Milliseconds(30)) {
    AwaitChange("tiny", ModelState::kIdle, 2);
  }
};

TEST_F(IdleVersionsTest, AClientsLoadLoadsWhatIsIdle) {
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 4);
}

// The error is the repository's: no load of theirs has failed.
TEST_F(IdleVersionsTest, AFailedLookUpLeavesWhatIsIdleAsItIs) {
  SetFindError(absl::UnavailableError("stale handle"));
  EXPECT_TRUE(absl::IsUnavailable(Load()));
  for (const ModelStatus& version : registry_.List()) {
    EXPECT_EQ(version.state, ModelState::kIdle);
    EXPECT_TRUE(version.error.ok()) << version.error;
  }
  EXPECT_TRUE(registry_.Ready().ok());
  EXPECT_TRUE(registry_.NeedsLoad("tiny")) << "a request loads it";
}

class PolledIdleVersionsTest : public IdleVersionsTest {
 protected:
  PolledIdleVersionsTest() : IdleVersionsTest(ModelControl::kPoll) {}
};

TEST_F(PolledIdleVersionsTest, ANewVersionLeavesTheOthersIdle) {
  SetVersions({{1, "tiny"}, {2, "two"}, {3, "three"}});
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 3);
  EXPECT_TRUE(registry_.NeedsLoad("tiny", "1"));
  EXPECT_TRUE(registry_.NeedsLoad("tiny", "2"));
}

// What the repository's next change finds is what the load of the idle model has loaded.
TEST_F(PolledIdleVersionsTest, AVersionThatWasIdleIsLoadedAnewOnlyIfItChangedSince) {
  SetFingerprint(1, "second");
  std::promise<void> loaded;
  registry_.LoadIdle("tiny", [&](const absl::Status&) { loaded.set_value(); });
  loaded.get_future().get();
  EXPECT_EQ(loads_, 4);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 4);
  SetFingerprint(1, "third");
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(loads_, 5);
}

}  // namespace
}  // namespace attendant
