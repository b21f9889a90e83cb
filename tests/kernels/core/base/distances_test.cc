// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace attendant {
namespace {

// Of transformers' MPNet: 32 buckets up to distance 128.
TEST(DistanceBucketTest, BeginsWhereTransformersDoes) {
  constexpr int64_t kFirst[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  for (int64_t distance = 0; distance <= 600; ++distance) {
    const int64_t bucket =
        std::upper_bound(std::begin(kFirst), std::end(kFirst), distance) - std::begin(kFirst) - 1;
    EXPECT_EQ(DistanceBucket(-distance, 32, 128), bucket) << distance;
    if (distance == 0) continue;
    EXPECT_EQ(DistanceBucket(distance, 32, 128), 16 + bucket) << distance;
  }
}

}  // namespace
}  // namespace attendant
