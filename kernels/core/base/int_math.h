// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant {

// For a >= 0 and b >= 1.
constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
// The least multiple of `multiple` that is not below `value`.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return CeilDivide(value, multiple) * multiple;
}

}  // namespace attendant
