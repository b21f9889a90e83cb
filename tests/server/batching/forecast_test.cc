// SPDX-License-Identifier: Apache-2.0
#include "server/batching/forecast.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace attendant {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

BatchShape Shape(int64_t sequences, int64_t len) {
  return {sequences, sequences * len, sequences * len * len};
}
BatchShape Shape(int64_t tokens) { return Shape(1, tokens); }

// 1 ms a token.
CostModel Cost() {
  std::vector<CostModel::Sample> samples;
  for (const int64_t len : {1, 10, 50, 100}) {
    samples.push_back({Shape(len), absl::Milliseconds(len)});
    samples.push_back({Shape(2, len), absl::Milliseconds(2 * len)});
  }
  return CostModel::Fit(samples);
}

// Batches of 100 tokens.
Forecast TwoWorkers() { return Forecast(Cost(), 100, 2); }

double Ms(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

struct AnswerCase {
  std::string name;
  Backlog backlog;
  int64_t workers;
  double ms;
};

class AnswerTimeTest : public testing::TestWithParam<AnswerCase> {};

// Batches of 100 tokens.
TEST_P(AnswerTimeTest, ByTable) {
  const CostModel cost = Cost();
  const BatchCapacity capacity{
      .cost = cost, .max_batch_tokens = 100, .workers = GetParam().workers};
  EXPECT_NEAR(Ms(AnswerTime(GetParam().backlog, capacity)), GetParam().ms, 0.01);
}

constexpr absl::Duration kFree = absl::ZeroDuration();

INSTANTIATE_TEST_SUITE_P(
    Table, AnswerTimeTest,
    testing::Values(
        AnswerCase{"AloneAQuarterOfItsTime", {kFree, Shape(1, 40), {}}, 1, 10},
        AnswerCase{"BehindARunningBatch", {absl::Milliseconds(60), Shape(1, 40), {}}, 1, 25},
        AnswerCase{"ManyBatches", {kFree, Shape(10, 100), {}}, 1, 25 + 1.2 * 900},
        AnswerCase{"WorkersShare", {kFree, Shape(10, 100), {}}, 4, 25 + 1.2 * 150},
        AnswerCase{"HigherPrioritiesFirst", {kFree, Shape(1, 40), Shape(2, 80)}, 1, 25 + 1.2 * 100},
        AnswerCase{"OverdueItGetsAQuarterOfTheTime",
                   {kFree, Shape(1, 40), Shape(4, 100), absl::Milliseconds(60)},
                   1,
                   25 + 1.2 * (60 + 4 * 40 - 100)},
        AnswerCase{"UntilTheHigherPrioritiesAreDone",
                   {kFree, Shape(1, 40), Shape(2, 80), absl::Milliseconds(60)},
                   1,
                   25 + 1.2 * 100}),
    [](const auto& test) { return test.param.name; });

TEST(TimeNeededTest, IsHalfMoreThanAFullBatchUnderOverload) {
  const CostModel cost = Cost();
  const BatchCapacity capacity{.cost = cost, .max_batch_tokens = 100, .workers = 2};
  EXPECT_EQ(TimeNeeded(Shape(20, 10), capacity), absl::ZeroDuration()) << "a batch for each worker";
  EXPECT_NEAR(Ms(TimeNeeded(Shape(21, 10), capacity)), 150, 0.01);
  EXPECT_EQ(TimeNeeded({}, capacity), absl::ZeroDuration());
}

TEST(UnfittedCostTest, RefusesNothing) {
  CostModel cost;
  cost.Observe(Shape(1, 10), absl::Seconds(1));
  const BatchCapacity capacity{.cost = cost, .max_batch_tokens = 100};
  EXPECT_EQ(TimeNeeded(Shape(100, 40), capacity), absl::ZeroDuration());
  EXPECT_EQ(AnswerTime({kFree, Shape(1, 40), {}}, capacity), absl::ZeroDuration());
  EXPECT_EQ(TimeFor(Shape(1, 40), capacity), absl::Seconds(4));
  EXPECT_EQ(TimeFor({}, capacity), absl::ZeroDuration());
}

TEST(HeadTimeTest, CountsInEveryTime) {
  const CostModel cost = Cost();
  const BatchCapacity capacity{.cost = cost, .max_batch_tokens = 1000, .workers = 2};
  const BatchShape plain = Shape(80, 50);  // four batches
  BatchShape shape = plain;
  shape.head_ns = 8'000'000;
  EXPECT_NEAR(Ms(TimeFor(shape, capacity) - TimeFor(plain, capacity)), 4, 0.01);
  EXPECT_NEAR(Ms(TimeNeeded(shape, capacity) - TimeNeeded(plain, capacity)), 3, 0.01);
  const Backlog backlog{.until_free = absl::ZeroDuration(), .same_priority = shape, .higher = {}};
  const Backlog less{.until_free = absl::ZeroDuration(), .same_priority = plain, .higher = {}};
  EXPECT_GT(AnswerTime(backlog, capacity), AnswerTime(less, capacity));
}

TEST(ForecastTest, ACapacityIsThatOfItsMoment) {
  Forecast forecast = TwoWorkers();
  const BatchCapacity before = forecast.capacity();
  const absl::Duration time = TimeFor(Shape(1, 40), before);
  forecast.Observe(Shape(1, 40), 10 * time);
  EXPECT_EQ(TimeFor(Shape(1, 40), before), time);
  EXPECT_GT(TimeFor(Shape(1, 40), forecast.capacity()), time);
}

TEST(ForecastTest, AnIdleWorkerIsFreeAtOnce) {
  Forecast forecast = TwoWorkers();
  EXPECT_EQ(forecast.UntilFree(kNow), absl::ZeroDuration());
  forecast.Begin(0, Shape(40), kNow);
  EXPECT_EQ(forecast.UntilFree(kNow), absl::ZeroDuration());
}

TEST(ForecastTest, TheFirstOfBusyWorkersIsFreeNext) {
  Forecast forecast = TwoWorkers();
  forecast.Begin(0, Shape(40), kNow);
  forecast.Begin(1, Shape(100), kNow);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow)), 40, 0.01);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow + absl::Milliseconds(30))), 10, 0.01);
  EXPECT_EQ(forecast.UntilFree(kNow + absl::Seconds(1)), absl::ZeroDuration()) << "it is late";
  forecast.End(1);
  EXPECT_EQ(forecast.UntilFree(kNow), absl::ZeroDuration());
}

TEST(ForecastTest, ALostWorkerNeitherGetsFreeNorShares) {
  Forecast forecast = TwoWorkers();
  forecast.Begin(1, Shape(100), kNow);
  forecast.Lose(0);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow)), 100, 0.01);
  EXPECT_EQ(forecast.capacity().workers, 1);
  EXPECT_EQ(forecast.capacity().max_batch_tokens, 100);
}

TEST(ForecastTest, FollowsTheBatchesThatRun) {
  Forecast forecast = TwoWorkers();
  for (int i = 0; i < 30; ++i) forecast.Observe(Shape(100), absl::Milliseconds(300));
  EXPECT_NEAR(Ms(forecast.capacity().cost.Estimate(Shape(50))), 150, 2);
  forecast.Begin(0, Shape(50), kNow);
  forecast.Begin(1, Shape(100), kNow);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow)), 150, 2);
}

TEST(ForecastTest, TriesEveryEighthRequestWhileNothingElseIsToBeComputed) {
  Forecast forecast = TwoWorkers();
  forecast.Begin(0, Shape(100), kNow);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 7; ++i) EXPECT_FALSE(forecast.TriesAnyway({}, kNow)) << i;
    EXPECT_TRUE(forecast.TriesAnyway({}, kNow));
  }
}

TEST(ForecastTest, TriesNoRequestOfABusyServer) {
  Forecast forecast = TwoWorkers();
  for (int i = 0; i < 7; ++i) forecast.TriesAnyway({}, kNow);
  EXPECT_FALSE(forecast.TriesAnyway(Shape(1), kNow)) << "one is queued";
  forecast.Begin(0, Shape(100), kNow);
  forecast.Begin(1, Shape(100), kNow);
  EXPECT_FALSE(forecast.TriesAnyway({}, kNow)) << "all workers are busy";
  forecast.End(0);
  EXPECT_TRUE(forecast.TriesAnyway({}, kNow)) << "the two did not count";
}

TEST(ForecastTest, AClientComesAgainWhenTheQueueIsDone) {
  Forecast forecast = TwoWorkers();
  EXPECT_NEAR(Ms(forecast.RetryDelay(Shape(400))), 200, 0.01) << "two workers share it";
  forecast.Lose(1);
  EXPECT_NEAR(Ms(forecast.RetryDelay(Shape(400))), 400, 0.01);
  EXPECT_EQ(forecast.RetryDelay({}), absl::Milliseconds(1));
  EXPECT_EQ(forecast.RetryDelay(Shape(1 << 20)), absl::Seconds(10));
}

TEST(ForecastTest, BeforeAnyBatchAClientComesAgainSoon) {
  Forecast forecast(CostModel(), 100, 1);
  EXPECT_EQ(forecast.RetryDelay(Shape(400)), absl::Milliseconds(100));
  EXPECT_FALSE(forecast.capacity().cost.fitted());
}

}  // namespace
}  // namespace attendant
