// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/distances.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace attendant {

std::vector<float> AlibiSlopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  const auto slope = [](int64_t head, int64_t of) {
    return static_cast<float>(
        std::exp2(-8 * static_cast<double>(head + 1) / static_cast<double>(of)));
  };
  for (int64_t h = 0; h < power; ++h) slopes.push_back(slope(h, power));
  for (int64_t h = 0; h < heads - power; ++h) slopes.push_back(slope(2 * h, 2 * power));
  return slopes;
}

int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t half = buckets / 2, exact = half / 2, steps = std::abs(distance);
  const int64_t first = distance > 0 ? half : 0;
  if (steps < exact) return first + steps;
  // In float and in this order, as PyTorch computes it: where a bucket begins, a logarithm is
  // whole.
  const float octaves =
      std::log(static_cast<float>(steps) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto beyond = static_cast<int64_t>(octaves * static_cast<float>(half - exact));
  return first + std::min(exact + beyond, half - 1);
}

int64_t DisentangledBucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t half = buckets / 2, exact = half / 2;
  int64_t steps = std::abs(distance);
  if (steps > exact) {
    // In float and in this order, as PyTorch computes it.
    const float octaves = std::log(static_cast<float>(steps) / static_cast<float>(exact)) /
                          std::log(static_cast<float>(static_cast<double>(max_distance - 1) /
                                                      static_cast<double>(exact)));
    steps = exact + static_cast<int64_t>(std::ceil(octaves * static_cast<float>(exact - 1)));
  }
  return std::clamp<int64_t>(half + (distance > 0 ? -steps : steps), 0, buckets - 1);
}

}  // namespace attendant
