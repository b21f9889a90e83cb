// SPDX-License-Identifier: Apache-2.0
#include "server/batching/forecast.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/time/time.h"

namespace attendant {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

BatchShape Shape(int64_t tokens) {
  BatchShape shape;
  shape.Add(tokens);
  return shape;
}

// 1 ms a token.
CostModel Cost() {
  std::vector<CostModel::Sample> samples;
  for (const int64_t len : {1, 10, 50, 100}) {
    samples.push_back({Shape(len), absl::Milliseconds(len)});
  }
  return CostModel::Fit(samples);
}

// Batches of 100 tokens.
Forecast TwoWorkers() { return Forecast(Cost(), 100, 2); }

double Ms(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

TEST(ForecastOfWorkersTest, AnIdleWorkerIsFreeAtOnce) {
  Forecast forecast = TwoWorkers();
  EXPECT_EQ(forecast.UntilFree(kNow), absl::ZeroDuration());
  forecast.Begin(0, Shape(40), kNow);
  EXPECT_EQ(forecast.UntilFree(kNow), absl::ZeroDuration());
}

TEST(ForecastOfWorkersTest, TheFirstOfBusyWorkersIsFreeNext) {
  Forecast forecast = TwoWorkers();
  forecast.Begin(0, Shape(40), kNow);
  forecast.Begin(1, Shape(100), kNow);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow)), 40, 0.01);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow + absl::Milliseconds(30))), 10, 0.01);
  EXPECT_EQ(forecast.UntilFree(kNow + absl::Seconds(1)), absl::ZeroDuration()) << "it is late";
  forecast.End(1);
  EXPECT_EQ(forecast.UntilFree(kNow), absl::ZeroDuration());
}

TEST(ForecastOfWorkersTest, ALostWorkerNeitherGetsFreeNorShares) {
  Forecast forecast = TwoWorkers();
  forecast.Begin(1, Shape(100), kNow);
  forecast.Lose(0);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow)), 100, 0.01);
  EXPECT_EQ(forecast.force().workers, 1);
  EXPECT_EQ(forecast.force().max_batch_tokens, 100);
}

TEST(ForecastOfWorkersTest, FollowsTheBatchesThatRun) {
  Forecast forecast = TwoWorkers();
  for (int i = 0; i < 30; ++i) forecast.Observe(Shape(100), absl::Milliseconds(300));
  EXPECT_NEAR(Ms(forecast.force().cost.Estimate(Shape(50))), 150, 2);
  forecast.Begin(0, Shape(50), kNow);
  forecast.Begin(1, Shape(100), kNow);
  EXPECT_NEAR(Ms(forecast.UntilFree(kNow)), 150, 2);
}

TEST(ForecastOfWorkersTest, TriesEveryEighthRequestWhileNothingElseIsToBeComputed) {
  Forecast forecast = TwoWorkers();
  forecast.Begin(0, Shape(100), kNow);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 7; ++i) EXPECT_FALSE(forecast.TriesAnyway({}, kNow)) << i;
    EXPECT_TRUE(forecast.TriesAnyway({}, kNow));
  }
}

TEST(ForecastOfWorkersTest, TriesNoRequestOfABusyServer) {
  Forecast forecast = TwoWorkers();
  for (int i = 0; i < 7; ++i) forecast.TriesAnyway({}, kNow);
  EXPECT_FALSE(forecast.TriesAnyway(Shape(1), kNow)) << "one is queued";
  forecast.Begin(0, Shape(100), kNow);
  forecast.Begin(1, Shape(100), kNow);
  EXPECT_FALSE(forecast.TriesAnyway({}, kNow)) << "all workers are busy";
  forecast.End(0);
  EXPECT_TRUE(forecast.TriesAnyway({}, kNow)) << "the two did not count";
}

TEST(ForecastOfWorkersTest, AClientComesAgainWhenTheQueueIsDone) {
  Forecast forecast = TwoWorkers();
  EXPECT_NEAR(Ms(forecast.RetryDelay(Shape(400))), 200, 0.01) << "two workers share it";
  forecast.Lose(1);
  EXPECT_NEAR(Ms(forecast.RetryDelay(Shape(400))), 400, 0.01);
  EXPECT_EQ(forecast.RetryDelay({}), absl::Milliseconds(1));
  EXPECT_EQ(forecast.RetryDelay(Shape(1 << 20)), absl::Seconds(10));
}

TEST(ForecastOfWorkersTest, BeforeAnyBatchAClientComesAgainSoon) {
  Forecast forecast(CostModel(), 100, 1);
  EXPECT_EQ(forecast.RetryDelay(Shape(400)), absl::Milliseconds(100));
  EXPECT_FALSE(forecast.force().cost.fitted());
}

}  // namespace
}  // namespace attendant
