// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/token_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace attendant {
namespace {

TEST(TokenScalesTest, AreOfEachSequence) {
  PackedBatch batch;
  for (const std::vector<int32_t>& ids :
       {std::vector<int32_t>{1, 2, 3}, {7, 1, 7, 2, 3}, {7, 7}, {7}, {4}}) {
    const std::vector<int32_t> zeros(ids.size());
    batch.Append(ids, zeros, zeros);
  }
  std::vector<float> scales(static_cast<size_t>(batch.tokens()), -1);
  WriteTokenScales(batch, 7, scales.data());
  constexpr float kGrown = 5.0f / 3.0f;
  EXPECT_THAT(scales, testing::ElementsAre(1, 1, 1, 0, kGrown, 0, kGrown, kGrown, 0, 0, 0, 1));
}

}  // namespace
}  // namespace attendant
