// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

namespace attendant {

// The cosine of two vectors of length 1, [dims]. Rounding would make some a little larger than 1,
// which clients refuse.
inline float CosineOfNormalized(std::span<const float> a, std::span<const float> b) {
  return std::clamp(std::inner_product(a.begin(), a.end(), b.begin(), 0.0f), -1.0f, 1.0f);
}

}  // namespace attendant
