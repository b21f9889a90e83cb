// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class ModelHealthTest : public testing::Test {
 protected:
  ModelEntry& Add(const std::string& name, ModelState state) {
    ModelEntry& entry = entries_.emplace_back();
    entry.status.name = name;
    entry.status.state = state;
    if (entry.status.HasFailed()) entry.status.error = absl::InternalError("broken");
    return entry;
  }
  // "" when it is.
  std::string NotReady(Readiness readiness = Readiness::kAnyModel,
                       ModelControl control = ModelControl::kNone) const {
    const RegistryOptions options{.readiness = readiness, .control = control};
    return std::string(CheckReady(entries_, options, absl::UnixEpoch()).message());
  }
  std::string NotLive() const {
    return std::string(CheckLive(entries_, absl::UnixEpoch()).message());
  }

  std::vector<ModelEntry> entries_;
};

TEST_F(ModelHealthTest, AServerWithoutModelsIsReadyWhereClientsLoadThem) {
  for (const bool built_in : {false, true}) {
    if (built_in) Add("attention", ModelState::kReady).built_in = true;
    EXPECT_EQ(NotReady(), "no model is there yet");
    EXPECT_EQ(NotReady(Readiness::kAnyModel, ModelControl::kPoll), "no model is there yet");
    EXPECT_EQ(NotReady(Readiness::kAnyModel, ModelControl::kExplicit), "");
    EXPECT_EQ(NotLive(), "");
  }
}

TEST_F(ModelHealthTest, OneModelThatServesMakesItReadyOrAllMustServe) {
  Add("failed", ModelState::kFailed);
  EXPECT_THAT(NotReady(), HasSubstr("'failed' failed to load: broken"));
  EXPECT_THAT(NotReady(Readiness::kAnyModel, ModelControl::kExplicit), HasSubstr("'failed'"));
  Add("ready", ModelState::kReady);
  EXPECT_EQ(NotReady(), "");
  EXPECT_THAT(NotReady(Readiness::kEveryModel), HasSubstr("'failed' failed to load: broken"));
}

TEST_F(ModelHealthTest, AnIdleModelServesUnlessItCouldNotBeLoadedAgain) {
  Add("idle", ModelState::kIdle);
  EXPECT_EQ(NotReady(Readiness::kEveryModel), "");
  ModelEntry& failed = Add("failed", ModelState::kIdleFailed);
  failed.status.error = absl::InternalError("broken");
  EXPECT_EQ(NotReady(), "");
  EXPECT_THAT(NotReady(Readiness::kEveryModel), HasSubstr("'failed' is idle, and the last load"));
}

TEST_F(ModelHealthTest, TheLoadsOfTheStartMustHaveEnded) {
  Add("ready", ModelState::kReady);
  ModelEntry& entry = Add("late", ModelState::kLoading);
  EXPECT_EQ(NotReady(Readiness::kEveryModel), "") << "a client loads it";
  entry.at_start = true;
  EXPECT_EQ(NotReady(), "model 'late' is loading");
}

TEST_F(ModelHealthTest, AModelThatIsLoadedAnewAfterAFailureHasFailed) {
  Add("ready", ModelState::kReady);
  Add("again", ModelState::kLoading).status.error = absl::InternalError("broken");
  EXPECT_EQ(NotReady(), "");
  EXPECT_EQ(NotReady(Readiness::kEveryModel), "model 'again' is loading");
}

TEST_F(ModelHealthTest, AModelThatHasStalledMakesItUnready) {
  Add("ready", ModelState::kReady);
  Add("slow", ModelState::kReady).status.stalled_workers = 2;
  EXPECT_EQ(NotReady(), "model 'slow' has stalled: 2 workers do not end their batches");
  EXPECT_EQ(NotLive(), "");
}

TEST_F(ModelHealthTest, AServerThatDrainsIsNotReady) {
  Add("ready", ModelState::kReady);
  Add("drains", ModelState::kDraining);
  EXPECT_THAT(NotReady(), HasSubstr("'drains' is draining"));
}

TEST_F(ModelHealthTest, AServerDiesOfALossWhenNothingServesOrLoads) {
  Add("attention", ModelState::kReady).built_in = true;
  Add("failed", ModelState::kFailed);
  Add("unloaded", ModelState::kUnloaded);
  EXPECT_EQ(NotLive(), "") << "a new process would fare no better";
  Add("lost", ModelState::kLost);
  EXPECT_EQ(NotLive(), "model 'lost' has lost what it computed on: broken");
  for (const ModelState state : {ModelState::kLoading, ModelState::kReady, ModelState::kIdle,
                                 ModelState::kIdleFailed, ModelState::kUnloading}) {
    Add("other", state);
    EXPECT_EQ(NotLive(), "") << static_cast<int>(state);
    entries_.pop_back();
  }
}

}  // namespace
}  // namespace attendant
