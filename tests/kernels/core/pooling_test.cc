// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(PoolingTest, AZeroVectorStaysZero) {
  const std::vector<float> zeros(3, 0.0f);
  std::vector<float> pooled(3, 1.0f);
  PoolSequence({zeros.data(), {1, 3}}, {.pooling = Pooling::kCls, .normalize = true},
               pooled.data());
  EXPECT_THAT(pooled, ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace attendant
