// SPDX-License-Identifier: Apache-2.0
#include "server/batching/cost_model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/batching/forecast.h"

namespace attendant {
namespace {

BatchShape Shape(int64_t sequences, int64_t len) {
  return {sequences, sequences * len, sequences * len * len};
}

// 2 ms + 0.1 ms a sequence + 0.01 ms a token + 1 ns a square.
absl::Duration True(const BatchShape& shape) {
  return absl::Milliseconds(2) + absl::Microseconds(100) * shape.sequences +
         absl::Microseconds(10) * shape.tokens + absl::Nanoseconds(1) * shape.squares;
}

std::vector<CostModel::Sample> Samples(absl::Duration (*time)(const BatchShape&)) {
  std::vector<CostModel::Sample> samples;
  for (const int64_t len : {8, 64, 256, 512}) {
    for (const int64_t sequences : {1, 2, 8}) {
      samples.push_back({Shape(sequences, len), time(Shape(sequences, len))});
    }
  }
  return samples;
}

void ExpectNear(absl::Duration got, absl::Duration wanted, double relative) {
  EXPECT_NEAR(absl::FDivDuration(got, wanted), 1, relative) << got << " for " << wanted;
}

TEST(CostModelTest, FindsTheTermsOfExactTimes) {
  const CostModel model = CostModel::Fit(Samples(True));
  ASSERT_TRUE(model.fitted());
  for (const BatchShape& shape : {Shape(1, 1), Shape(20, 50), Shape(3, 300), BatchShape{}}) {
    ExpectNear(model.Estimate(shape), True(shape), 1e-6);
  }
}

TEST(CostModelTest, TheTimeOfHeadsComesOnTop) {
  CostModel model = CostModel::Fit(Samples(True));
  BatchShape shape = Shape(20, 50);
  shape.head_ns = 7'000'000;
  const absl::Duration both = True(shape) + absl::Milliseconds(7);
  ExpectNear(model.Estimate(shape), both, 1e-6);
  for (int i = 0; i < 30; ++i) model.Observe(shape, 3 * both);
  ExpectNear(model.Estimate(shape), 3 * both, 0.01);
  ExpectNear(model.Estimate(Shape(1, 400)), 3 * True(Shape(1, 400)), 0.01);
  BatchShape summed;
  summed.Add(9);
  summed.Add(5, 40);
  EXPECT_EQ(summed.head_ns, 40);
}

TEST(HeadForecastTest, BatchesTakeTheTimeOfTheirHeads) {
  const CostModel model = CostModel::Fit(Samples(True));
  const Workforce force{.cost = model, .max_batch_tokens = 1000, .workers = 2};
  const BatchShape plain = Shape(80, 50);  // four batches
  BatchShape shape = plain;
  shape.head_ns = 8'000'000;
  ExpectNear(TimeFor(shape, force) - TimeFor(plain, force), absl::Milliseconds(4), 1e-6);
  ExpectNear(TimeNeeded(shape, force) - TimeNeeded(plain, force), absl::Milliseconds(3), 1e-6);
  const Backlog backlog{.until_free = absl::ZeroDuration(), .same_priority = shape, .higher = {}};
  const Backlog less{.until_free = absl::ZeroDuration(), .same_priority = plain, .higher = {}};
  EXPECT_GT(AnswerTime(backlog, force), AnswerTime(less, force));
}

TEST(CostModelTest, NoTermIsNegative) {
  const CostModel model = CostModel::Fit(Samples([](const BatchShape& shape) {
    return absl::Microseconds(10 * shape.tokens) - absl::Microseconds(5 * shape.sequences);
  }));
  EXPECT_GE(model.Estimate({}), absl::ZeroDuration());
  EXPECT_GE(model.Estimate({.sequences = 1'000'000}), absl::ZeroDuration());
  ExpectNear(model.Estimate(Shape(8, 256)), absl::Microseconds(20440), 0.1);
}

TEST(CostModelTest, ShapesThatDoNotTellTermsApartStillFit) {
  const std::vector<CostModel::Sample> same(3, {Shape(4, 32), absl::Milliseconds(5)});
  const CostModel model = CostModel::Fit(same);
  ASSERT_TRUE(model.fitted());
  ExpectNear(model.Estimate(Shape(4, 32)), absl::Milliseconds(5), 1e-6);
}

TEST(CostModelTest, WithoutSamplesKnowsNothing) {
  const CostModel model = CostModel::Fit({});
  EXPECT_FALSE(model.fitted());
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.Estimate(Shape(1, 10)), absl::ZeroDuration());
}

TEST(CostModelTest, WithoutAFitLearnsATimePerToken) {
  CostModel model;
  model.Observe(Shape(2, 10), absl::Milliseconds(20));
  EXPECT_TRUE(model.known());
  EXPECT_FALSE(model.fitted());
  ExpectNear(model.Estimate(Shape(1, 50)), absl::Milliseconds(50), 1e-9);
}

TEST(CostModelTest, FollowsASlowerMachineAndComesBack) {
  CostModel model = CostModel::Fit(Samples(True));
  const BatchShape shape = Shape(10, 48);
  for (int i = 0; i < 30; ++i) model.Observe(shape, 3 * True(shape));
  ExpectNear(model.Estimate(Shape(1, 400)), 3 * True(Shape(1, 400)), 0.01);
  for (int i = 0; i < 30; ++i) model.Observe(shape, True(shape));
  ExpectNear(model.Estimate(shape), True(shape), 0.01);
}

TEST(CostModelTest, OneBatchThatWasHeldUpMovesItLittle) {
  CostModel model = CostModel::Fit(Samples(True));
  const BatchShape shape = Shape(10, 48);
  model.Observe(shape, absl::Seconds(30));
  EXPECT_LT(model.Estimate(shape), 1.1 * True(shape));
  model.Observe(shape, absl::ZeroDuration());  // no time: not a batch
  EXPECT_LT(model.Estimate(shape), 1.1 * True(shape));
}

struct ForecastCase {
  std::string name;
  Backlog backlog;
  int64_t workers;
  double ms;
};

class ForecastTest : public testing::TestWithParam<ForecastCase> {};

// 1 ms a token exactly; batches of 100 tokens.
TEST_P(ForecastTest, AnswerTimeByTable) {
  std::vector<CostModel::Sample> samples;
  for (const int64_t len : {1, 10, 50, 100}) {
    samples.push_back({Shape(1, len), absl::Milliseconds(len)});
    samples.push_back({Shape(2, len), absl::Milliseconds(2 * len)});
  }
  const CostModel cost = CostModel::Fit(samples);
  const Workforce force{.cost = cost, .max_batch_tokens = 100, .workers = GetParam().workers};
  EXPECT_NEAR(absl::ToDoubleMilliseconds(AnswerTime(GetParam().backlog, force)), GetParam().ms,
              0.01);
}

constexpr absl::Duration kFree = absl::ZeroDuration();

INSTANTIATE_TEST_SUITE_P(
    Table, ForecastTest,
    testing::Values(
        ForecastCase{"AloneAQuarterOfItsTime", {kFree, Shape(1, 40), {}}, 1, 10},
        ForecastCase{"BehindARunningBatch", {absl::Milliseconds(60), Shape(1, 40), {}}, 1, 25},
        ForecastCase{"ManyBatches", {kFree, Shape(10, 100), {}}, 1, 25 + 1.2 * 900},
        ForecastCase{"WorkersShare", {kFree, Shape(10, 100), {}}, 4, 25 + 1.2 * 150},
        ForecastCase{
            "HigherPrioritiesFirst", {kFree, Shape(1, 40), Shape(2, 80)}, 1, 25 + 1.2 * 100},
        ForecastCase{"OverdueItGetsAQuarterOfTheTime",
                     {kFree, Shape(1, 40), Shape(4, 100), absl::Milliseconds(60)},
                     1,
                     25 + 1.2 * (60 + 4 * 40 - 100)},
        ForecastCase{"UntilTheHigherPrioritiesAreDone",
                     {kFree, Shape(1, 40), Shape(2, 80), absl::Milliseconds(60)},
                     1,
                     25 + 1.2 * 100}),
    [](const auto& test) { return test.param.name; });

TEST(TimeNeededTest, IsHalfMoreThanAFullBatchUnderOverload) {
  const std::vector<CostModel::Sample> samples = {{Shape(1, 10), absl::Milliseconds(10)},
                                                  {Shape(1, 100), absl::Milliseconds(100)},
                                                  {Shape(2, 100), absl::Milliseconds(200)}};
  const CostModel cost = CostModel::Fit(samples);
  const Workforce force{.cost = cost, .max_batch_tokens = 100, .workers = 2};
  EXPECT_EQ(TimeNeeded(Shape(20, 10), force), absl::ZeroDuration()) << "a batch for each worker";
  EXPECT_NEAR(absl::ToDoubleMilliseconds(TimeNeeded(Shape(21, 10), force)), 150, 0.01);
  EXPECT_EQ(TimeNeeded({}, force), absl::ZeroDuration());
}

TEST(UnfittedForecastTest, WithoutAFitNothingIsRefused) {
  CostModel cost;
  cost.Observe(Shape(1, 10), absl::Seconds(1));
  const Workforce force{.cost = cost, .max_batch_tokens = 100};
  EXPECT_EQ(TimeNeeded(Shape(100, 40), force), absl::ZeroDuration());
  EXPECT_EQ(AnswerTime({kFree, Shape(1, 40), {}}, force), absl::ZeroDuration());
  EXPECT_EQ(TimeFor(Shape(1, 40), force), absl::Seconds(4));
  EXPECT_EQ(TimeFor({}, force), absl::ZeroDuration());
}

}  // namespace
}  // namespace attendant
