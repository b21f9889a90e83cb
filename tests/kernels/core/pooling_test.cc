// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

const std::vector<float> kStates = {1, -2, 3,  //
                                    5, 4,  -6};

std::vector<float> Pool(const SequenceOutputs& spec) {
  std::vector<float> pooled(static_cast<size_t>(spec.dims > 0 ? spec.dims : 3), -99.0f);
  PoolSequence({kStates.data(), {2, 3}}, spec, pooled.data());
  return pooled;
}

TEST(PoolingTest, EachKind) {
  EXPECT_THAT(Pool({.pooling = Pooling::kMean}), ElementsAre(3, 1, -1.5f));
  EXPECT_THAT(Pool({.pooling = Pooling::kMax}), ElementsAre(5, 4, 3));
  EXPECT_THAT(Pool({.pooling = Pooling::kCls}), ElementsAre(1, -2, 3));
  EXPECT_THAT(Pool({.pooling = Pooling::kLast}), ElementsAre(5, 4, -6));
}

TEST(PoolingTest, TruncatesBeforeItNormalizes) {
  const std::vector<float> expected = {3 / std::sqrt(10.0f), 1 / std::sqrt(10.0f)};
  EXPECT_THAT(Pool({.pooling = Pooling::kMean, .normalize = true, .dims = 2}),
              Pointwise(FloatNear(1e-6f), expected));
}

// Against sums in f64, relative to the length of the vector.
TEST(PoolingTest, MeansOfManyTokensAreExact) {
  constexpr int64_t kLen = 32'768, kHidden = 300;
  std::minstd_rand random(1);
  std::normal_distribution<float> normal;
  std::vector<float> states(kLen * kHidden);
  for (float& state : states) state = normal(random);
  std::vector<int32_t> positions(kLen);
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<Pooling> kinds = {Pooling::kMean, Pooling::kWeightedMean};
  std::vector<float> pooled(kinds.size() * kHidden);
  PoolTokens({states.data(), {kLen, kHidden}}, positions, kinds, 0, pooled.data());
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    double errors = 0, squares = 0;
    for (int64_t j = 0; j < kHidden; ++j) {
      double sum = 0, weights = 0;
      for (int64_t t = 0; t < kLen; ++t) {
        const double weight = kind == 0 ? 1.0 : static_cast<double>(t + 1);
        sum += weight * static_cast<double>(states[static_cast<size_t>(t * kHidden + j)]);
        weights += weight;
      }
      const double exact = sum / weights;
      const double error =
          static_cast<double>(pooled[kind * kHidden + static_cast<size_t>(j)]) - exact;
      errors += error * error;
      squares += exact * exact;
    }
    EXPECT_LT(std::sqrt(errors / squares), 5e-7);
  }
}

TEST(PoolingTest, AZeroVectorStaysZero) {
  const std::vector<float> zeros(3, 0.0f);
  std::vector<float> pooled(3, 1.0f);
  PoolSequence({zeros.data(), {1, 3}}, {.pooling = Pooling::kCls, .normalize = true},
               pooled.data());
  EXPECT_THAT(pooled, ElementsAre(0, 0, 0));
}

std::vector<float> PoolAt(const std::vector<int32_t>& positions, const std::vector<Pooling>& kinds,
                          int32_t first_position = 0) {
  std::vector<float> pooled(kinds.size() * 3, -99.0f);
  PoolTokens({kStates.data(), {2, 3}}, positions, kinds, first_position, pooled.data());
  return pooled;
}

TEST(PoolTokensTest, TheKindsThatBackEndsDoNotHave) {
  const float root = std::sqrt(2.0f);
  EXPECT_THAT(PoolAt({0, 1}, {Pooling::kMeanSqrtLen}),
              Pointwise(FloatNear(1e-6f), {6 / root, 2 / root, -3 / root}));
  EXPECT_THAT(PoolAt({0, 1}, {Pooling::kWeightedMean}),
              Pointwise(FloatNear(1e-6f), {11 / 3.0f, 6 / 3.0f, -9 / 3.0f}));
  EXPECT_THAT(PoolAt({1, 4}, {Pooling::kWeightedMean}),
              Pointwise(FloatNear(1e-6f), {27 / 7.0f, 16 / 7.0f, -24 / 7.0f}));
}

TEST(PoolTokensTest, KindsStandSideBySideInTheirOrder) {
  EXPECT_THAT(PoolAt({0, 1}, {Pooling::kLast, Pooling::kCls, Pooling::kMax}),
              ElementsAre(5, 4, -6, 1, -2, 3, 5, 4, 3));
}

TEST(PoolTokensTest, TokensOfAPromptAreLeftOut) {
  const std::vector<Pooling> kinds = {Pooling::kCls, Pooling::kMean, Pooling::kWeightedMean};
  EXPECT_THAT(PoolAt({0, 2}, kinds, 1), ElementsAre(5, 4, -6, 5, 4, -6, 5, 4, -6));
  EXPECT_THAT(PoolAt({0, 2}, kinds, 3), ElementsAre(1, -2, 3, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(PoolAt({0, 2}, {Pooling::kMax, Pooling::kLast}, 3), ElementsAre(0, 0, 0, 0, 0, 0));
}

std::vector<float> PoolPart(const std::vector<int32_t>& positions,
                            const std::vector<Pooling>& kinds, TokenSpan span) {
  std::vector<float> pooled(kinds.size() * 3, -99.0f);
  PoolSpan({kStates.data(), {2, 3}}, positions, kinds, span, pooled.data());
  return pooled;
}

const std::vector<Pooling> kSpanKinds = {Pooling::kMean, Pooling::kMax, Pooling::kMeanSqrtLen,
                                         Pooling::kWeightedMean};

TEST(PoolSpanTest, AllTokensArePooledAsTheSequence) {
  EXPECT_EQ(PoolPart({0, 1}, kSpanKinds, {0, 2}), PoolAt({0, 1}, kSpanKinds));
  EXPECT_EQ(PoolPart({2, 5}, kSpanKinds, {2, 6}), PoolAt({2, 5}, kSpanKinds));
}

TEST(PoolSpanTest, OnlyTokensOfTheSpanHaveAPart) {
  EXPECT_THAT(PoolPart({0, 2}, {Pooling::kMean, Pooling::kMax}, {0, 2}),
              ElementsAre(1, -2, 3, 1, -2, 3));
  EXPECT_THAT(PoolPart({0, 2}, {Pooling::kWeightedMean, Pooling::kMeanSqrtLen}, {1, 3}),
              ElementsAre(5, 4, -6, 5, 4, -6));
}

TEST(PoolSpanTest, WithoutTokensIsZeros) {
  EXPECT_THAT(PoolPart({0, 3}, {Pooling::kMean}, {1, 3}), ElementsAre(0, 0, 0));
  EXPECT_THAT(PoolPart({0, 3}, {Pooling::kMax}, {4, 9}), ElementsAre(0, 0, 0));
  EXPECT_THAT(PoolPart({0, 3}, {Pooling::kMax}, {3, 2}), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace attendant
