// SPDX-License-Identifier: Apache-2.0
// The series of models that come and go.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/metrics/server_metrics.h"
#include "tests/server/metrics/metrics_fixture.h"

namespace attendant {
namespace {

class ModelSeriesTest : public MetricsTest {};

TEST_F(ModelSeriesTest, ARemovedModelTakesItsSeriesAlongOnceNobodyUsesThem) {
  const auto has_series = [this] {
    return metrics_.Scrape().find("model=\"m\"") != std::string::npos;
  };
  std::shared_ptr<ModelMetrics> user = metrics_.ForModel("m");
  user->SetKind(ModelKind::kEncoder);
  user->ObservePhase(Method::kEncode, Phase::kQueue, absl::Milliseconds(1));
  user->CountRequest(Method::kAttend, absl::StatusCode::kInternal);
  user->SetLoaded({.dtype = "f32", .backend = "cpu", .isa = "avx2", .load_time = absl::Seconds(1)});
  metrics_.RemoveModel("m");
  EXPECT_EQ(metrics_.FindModel("m"), nullptr);
  EXPECT_TRUE(has_series()) << "its last request is not answered";
  user->CountTokens(1, 0);
  user.reset();
  EXPECT_FALSE(has_series());
  metrics_.RemoveModel("nobody");
}

TEST_F(ModelSeriesTest, AModelThatComesBackKeepsTheSeriesThatAreInUse) {
  const std::shared_ptr<ModelMetrics> user = metrics_.ForModel("m");
  user->CountTokens(5, 0);
  metrics_.RemoveModel("m");
  EXPECT_EQ(metrics_.ForModel("m"), user);
  EXPECT_EQ(metrics_.FindModel("m"), user);
  EXPECT_EQ(Scrape().Value("attendant_tokens_total", {{"model", "m"}, {"kind", "valid"}}), 5);
}

TEST_F(ModelSeriesTest, AReloadDoesNotAddSeries) {
  const std::shared_ptr<ModelMetrics> model = metrics_.ForModel("m");
  for (const char* dtype : {"f32", "bf16", "bf16"}) {
    model->SetLoaded(
        {.dtype = dtype, .backend = "cpu", .isa = "avx2", .load_time = absl::Seconds(1)});
  }
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.families().at("attendant_model_loaded_info").samples.size(), 1u);
  EXPECT_EQ(scrape.Value("attendant_model_loaded_info",
                         {{"model", "m"}, {"dtype", "bf16"}, {"backend", "cpu"}, {"isa", "avx2"}}),
            1);
}

TEST_F(ModelSeriesTest, AModelThatIsNotLoadedHasNoInfoUntilItIsLoadedAgain) {
  const auto has_info = [this] {
    return metrics_.Scrape().find("attendant_model_loaded_info{") != std::string::npos;
  };
  const std::shared_ptr<ModelMetrics> model = metrics_.ForModel("m");
  const ModelLoadInfo info = {
      .dtype = "f32", .backend = "cuda", .isa = "sm_90", .load_time = absl::Seconds(1)};
  model->SetLoaded(info);
  EXPECT_TRUE(has_info());
  model->SetNotLoaded();
  EXPECT_FALSE(has_info());
  model->SetNotLoaded();
  model->SetLoaded(info);
  EXPECT_TRUE(has_info());
}

}  // namespace
}  // namespace attendant
