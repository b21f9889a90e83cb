// SPDX-License-Identifier: Apache-2.0
// What KServe says of models that were unloaded because they were idle, and of several versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/protocols/kserve/models.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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

TEST_F(KServeIdleTest, AModelThatCannotBeLoadedAgainIsNotReady) {
  WriteFile(directory_ / "tiny/config.json", "{");
  absl::Notification tried;
  registry_.LoadIdle("tiny", [&tried](const absl::Status&) { tried.Notify(); });
  tried.WaitForNotification();
  inference::RepositoryIndexResponse all, ready;
  models_.FillIndex(/*ready_only=*/false, all);
  ASSERT_EQ(all.models_size(), 3) << "tiny, tiny.ids and tiny.encoder";
  EXPECT_EQ(all.models(0).state(), "UNAVAILABLE");
  EXPECT_THAT(all.models(0).reason(), HasSubstr("config.json"));
  models_.FillIndex(/*ready_only=*/true, ready);
  EXPECT_EQ(ready.models_size(), 0);
  EXPECT_TRUE(absl::IsUnavailable(models_.Describe("tiny.ids", "").status()));
}

using KServeVersionsTest = ModelRegistryTest;

TEST_F(KServeVersionsTest, StatisticsWithoutAVersionAreOfAll) {
  registry_.SetModels({{"other", directory_ / "tiny"},
                       {"tiny", directory_ / "tiny", 1},
                       {"tiny", directory_ / "tiny", 3}});
  registry_.StartLoading();
  AwaitChange("other", ModelState::kReady);
  AwaitChange("tiny", ModelState::kReady, 2);
  const KServeModels models(registry_, 100);
  const auto versions = [&models](const std::string& name, const std::string& version) {
    inference::ModelStatisticsResponse response;
    EXPECT_TRUE(models.FillStatistics(name, version, response).ok());
    std::vector<std::string> found;
    for (const auto& one : response.model_stats()) {
      found.push_back(absl::StrCat(one.name(), ":", one.version()));
    }
    return found;
  };
  EXPECT_THAT(versions("tiny.ids", ""), ElementsAre("tiny.ids:1", "tiny.ids:3"));
  EXPECT_THAT(versions("tiny", ""), ElementsAre("tiny:1", "tiny:3"));
  EXPECT_THAT(versions("tiny.ids", "1"), ElementsAre("tiny.ids:1"));
  EXPECT_THAT(versions("", ""), SizeIs(9));
  inference::ModelStatisticsResponse none;
  EXPECT_TRUE(absl::IsNotFound(models.FillStatistics("tiny", "2", none)));
}

TEST_F(KServeVersionsTest, StatisticsAreTheSameAtEveryDoorAndGoWithTheModel) {
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChange("tiny", ModelState::kReady);
  const KServeModels one(registry_, 100), other(registry_, 100);
  {
    const absl::StatusOr<KServeModelRef> model = one.Find("tiny.ids", "");
    ASSERT_TRUE(model.ok()) << model.status();
    model->statistics().RecordFailure(absl::Milliseconds(1));
  }
  const auto failures = [](const KServeModels& models, const std::string& name) {
    inference::ModelStatisticsResponse response;
    EXPECT_TRUE(models.FillStatistics(name, "", response).ok());
    return response.model_stats(0).inference_stats().fail().count();
  };
  EXPECT_EQ(failures(one, "tiny.ids"), 1u);
  EXPECT_EQ(failures(other, "tiny.ids"), 1u);
  EXPECT_EQ(failures(other, "tiny"), 0u);
  absl::Notification loaded;
  registry_.Load("tiny", [&loaded](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    loaded.Notify();
  });
  loaded.WaitForNotification();
  EXPECT_EQ(failures(one, "tiny.ids"), 0u);
}

}  // namespace
}  // namespace attendant
