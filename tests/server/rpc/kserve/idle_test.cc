// SPDX-License-Identifier: Apache-2.0
// What KServe says of a model that was unloaded because it was idle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/rpc/kserve/models.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class KServeIdleTest : public ModelRegistryTest {
 protected:
  KServeIdleTest() : ModelRegistryTest({.unload_idle = absl::Milliseconds(1)}) {
    registry_.SetModels({{"tiny", directory_ / "tiny"}});
    registry_.StartLoading();
    AwaitChange("tiny", ModelState::kIdle);
  }

  const KServeModels models_{registry_, 100};
};

TEST_F(KServeIdleTest, ItsStatisticsAreZeros) {
  inference::ModelStatisticsResponse one, all;
  const absl::Status status = models_.FillStatistics("tiny.ids", "", one);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(one.model_stats_size(), 1);
  EXPECT_EQ(one.model_stats(0).name(), "tiny.ids");
  EXPECT_EQ(one.model_stats(0).inference_count(), 0u);
  EXPECT_TRUE(models_.FillStatistics("", "", all).ok());
  EXPECT_EQ(all.model_stats_size(), 3) << "tiny, tiny.ids and tiny.encoder";
  EXPECT_TRUE(absl::IsNotFound(models_.FillStatistics("tiny.scores", "", one)));
}

TEST_F(KServeIdleTest, TheReasonNamesNoLoadThatFailed) {
  EXPECT_THAT(std::string(models_.Find("tiny", "").status().message()),
              HasSubstr("is idle: a request loads it"));
}

}  // namespace
}  // namespace attendant
