// SPDX-License-Identifier: Apache-2.0
#include "server/batching/cost_model.h"

#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace attendant
