// SPDX-License-Identifier: Apache-2.0
// Alone; model_life_test.cc has it in a registry.
#include "server/models/registry/model_reaper.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"

namespace attendant {
namespace {

// Its end waits for `may_end`, as one does whose workers compute.
struct TestModel final : ServableModel {
  TestModel(const std::string& model_name, absl::Notification& may_end_at) : may_end(may_end_at) {
    name = model_name;
  }
  ~TestModel() override { may_end.WaitForNotification(); }
  ModelLoadInfo LoadInfo() const override { return {}; }

  absl::Notification& may_end;
};

class ModelReaperTest : public testing::Test {
 protected:
  std::shared_ptr<ServableModel> Share(ModelReaper& reaper, const std::string& name) {
    return reaper.Share(std::make_unique<TestModel>(name, may_end_));
  }
  // Whether the models of this name that are given up are freed or ended, without waiting.
  static bool IsDone(ModelReaper& reaper, const std::string& name) {
    return reaper.AwaitGivenUp(name, absl::InfinitePast());
  }

  absl::Notification may_end_;
};

TEST_F(ModelReaperTest, AShareMayOutliveIt) {
  struct Seen final : ServableModel {
    explicit Seen(bool& ended_at) : ended(ended_at) {}
    ~Seen() override { ended = true; }
    ModelLoadInfo LoadInfo() const override { return {}; }

    bool& ended;
  };
  bool ended = false;
  auto reaper = std::make_unique<ModelReaper>();
  std::shared_ptr<ServableModel> share = reaper->Share(std::make_unique<Seen>(ended));
  const std::weak_ptr<ServableModel> weak = share;
  reaper.reset();
  EXPECT_FALSE(ended);
  share.reset();
  EXPECT_TRUE(ended) << "freed by its last owner; a leak checker sees the rest";
  EXPECT_TRUE(weak.expired());
}

TEST_F(ModelReaperTest, NobodyWaitsForModelsThatHaveEnded) {
  ModelReaper reaper;
  reaper.GiveUp(Share(reaper, "m"));
  reaper.GiveUp(Share(reaper, "other"));
  EXPECT_FALSE(IsDone(reaper, "m"));
  reaper.End("m");  // waits in vain for kEndTime
  EXPECT_TRUE(IsDone(reaper, "m"));
  EXPECT_FALSE(IsDone(reaper, "other"));
  EXPECT_FALSE(IsDone(reaper, "")) << "of all";
  reaper.End("");
  EXPECT_TRUE(IsDone(reaper, "other"));
  EXPECT_TRUE(IsDone(reaper, ""));
  may_end_.Notify();
}

// Its workers may compute for ever.
TEST_F(ModelReaperTest, AModelThatDoesNotEndKeepsNoOtherFromItsEnd) {
  ModelReaper reaper;
  absl::Notification at_once;
  at_once.Notify();
  reaper.GiveUp(Share(reaper, "m"));
  reaper.GiveUp(reaper.Share(std::make_unique<TestModel>("other", at_once)));
  EXPECT_TRUE(reaper.AwaitGivenUp("other", SteadyNow() + absl::Seconds(30)));
  EXPECT_FALSE(IsDone(reaper, "m"));
  may_end_.Notify();
  EXPECT_TRUE(reaper.AwaitGivenUp("m", SteadyNow() + absl::Seconds(30)));
}

}  // namespace
}  // namespace attendant
