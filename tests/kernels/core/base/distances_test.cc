// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

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

// Of transformers' DeBERTa v3, 256 buckets to either side up to distance 512: where they begin,
// from `make_log_bucket_position`.
TEST(DisentangledBucketTest, BeginsWhereTransformersDoes) {
  for (int64_t distance = 0; distance <= 128; ++distance) {
    EXPECT_EQ(DisentangledBucket(-distance, 512, 512), 256 + distance);
    EXPECT_EQ(DisentangledBucket(distance, 512, 512), 256 - distance);
  }
  const std::pair<int64_t, int64_t> far[] = {{129, 129}, {133, 132}, {200, 169}, {256, 192},
                                             {257, 192}, {300, 207}, {400, 233}, {509, 255},
                                             {511, 255}, {512, 256}, {600, 270}};
  for (const auto& [distance, steps] : far) {
    EXPECT_EQ(DisentangledBucket(-distance, 512, 512), std::min<int64_t>(256 + steps, 511));
    EXPECT_EQ(DisentangledBucket(distance, 512, 512), std::max<int64_t>(256 - steps, 0));
  }
}

}  // namespace
}  // namespace attendant
