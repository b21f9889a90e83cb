// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/core/backend.h"

// One value of an operand, f32 or bf16, for code that need not be fast.
namespace attendant::attention {

inline float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// The nearest, ties to even; what is not a number stays so.
inline uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

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
