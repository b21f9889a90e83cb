// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/base/half.h"
#include "kernels/core/dtype.h"

// One value of an operand, f32 or bf16, for code that need not be fast.
namespace attendant::attention {

// REQUIRES of both: dtype is f32 or bf16.
inline float ReadValue(const std::byte* row, DType dtype, int64_t index) {
  return dtype == DType::kBf16 ? FromBf16(reinterpret_cast<const uint16_t*>(row)[index])
                               : reinterpret_cast<const float*>(row)[index];
}
inline void WriteValue(std::byte* row, DType dtype, int64_t index, float value) {
  if (dtype == DType::kBf16) {
    reinterpret_cast<uint16_t*>(row)[index] = ToBf16(value);
  } else {
    reinterpret_cast<float*>(row)[index] = value;
  }
}

}  // namespace attendant::attention
