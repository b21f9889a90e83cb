// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

// bf16 and f16 from f32 and back, one value at a time. Vector code has its own (kernels/cpu/simd),
// as have devices (kernels/cuda/kernels/number_types.h). To the smaller format: to nearest, ties to
// even; a value that is too large becomes infinite; NaN stays NaN. To f32: exact.
namespace attendant {

inline uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t ToF16(float value) {
  constexpr uint32_t kOverflow = 0x477ff000;   // 65520, halfway between the largest f16 and 2^16
  constexpr uint32_t kMinNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= kOverflow) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < kMinNormal) {
    // The last place of 0.5f is f16's smallest subnormal number: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) & 0x7fff));
  }
  return static_cast<uint16_t>(sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - kRebias) >> 13);
}

inline float FromF16(uint16_t bits) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  constexpr uint32_t kOne = 1u << 23;  // of the exponent
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t rest = (bits & 0x7fffu) << 13;
  if (rest >= (0x7c00u << 13)) return std::bit_cast<float>(sign | 0x7f800000 | rest);
  if (rest >= kOne) return std::bit_cast<float>(sign | (rest + kRebias));
  // Subnormal: the fraction is put behind 2^-14, which is then taken off. No subnormal f32 is
  // touched, which a thread may flush to zero.
  const float magnitude = std::bit_cast<float>(rest + kRebias + kOne) - 0x1p-14f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

}  // namespace attendant
