// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/runtime/host_device.h"

namespace attendant::cuda {

// The number format of states and of the matmuls' operands (cuda_interface.h says what each is).
enum class DType : int32_t { kF32 = 0, kBf16 = 1, kF16 = 2, kFp8 = 3 };

// The name of the format as in the flag --dtype: "bf16".
inline const char* DTypeName(DType dtype) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "fp8"};
  return kNames[static_cast<int>(dtype)];
}

// The type of stored states: those of fp8 are bf16.
constexpr DType StateDType(DType dtype) { return dtype == DType::kFp8 ? DType::kBf16 : dtype; }
constexpr int64_t StateBytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

// Storage of one number, without arithmetic.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
struct E4m3 {
  uint8_t bits;
};

// f32 to each of them, to nearest and ties to even, bit for bit as the device converts
// (cvt.rn.bf16, cvt.rn.f16, cvt.rn.satfinite.e4m3): f16 overflows to infinity, e4m3 stays at 448,
// NaN becomes the format's positive NaN.
inline constexpr float kE4m3Max = 448.0f;
ATTENDANT_HOST_DEVICE inline Bf16 ToBf16(float value);
ATTENDANT_HOST_DEVICE inline F16 ToF16(float value);
ATTENDANT_HOST_DEVICE inline E4m3 ToE4m3(float value);

// Exact.
ATTENDANT_HOST_DEVICE inline float ToFloat(Bf16 value);
ATTENDANT_HOST_DEVICE inline float ToFloat(F16 value);
ATTENDANT_HOST_DEVICE inline float ToFloat(E4m3 value);

namespace number_types_internal {

ATTENDANT_HOST_DEVICE inline uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

ATTENDANT_HOST_DEVICE inline float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// |f32| to a smaller format of `mantissa_bits` whose smallest normal number is
// 2^(1 - exponent_bias), as sign-less bits that may exceed the format's largest.
ATTENDANT_HOST_DEVICE inline uint32_t RoundToNearestEven(uint32_t magnitude, int mantissa_bits,
                                                         int exponent_bias) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  uint32_t mantissa = magnitude & 0x7fffffu;
  uint32_t high = 0;               // exponent field, in place
  int shift = 23 - mantissa_bits;  // bits that are rounded away
  if (exponent < 1 - exponent_bias) {
    // Denormal in the target; what lies below half of its smallest number is 0.
    shift += 1 - exponent_bias - exponent;
    if (shift > 24) return 0;
    mantissa |= 0x800000u;
  } else {
    high = static_cast<uint32_t>(exponent + exponent_bias) << mantissa_bits;
  }
  const uint32_t kept = mantissa >> shift;
  const uint32_t lost = mantissa & ((1u << shift) - 1u);
  const uint32_t half = 1u << (shift - 1);
  // A carry out of the mantissa raises the exponent, which is right.
  return high + kept + (lost > half || (lost == half && (kept & 1u) != 0) ? 1u : 0u);
}

}  // namespace number_types_internal

inline Bf16 ToBf16(float value) {
  const uint32_t bits = number_types_internal::BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline F16 ToF16(float value) {
  const uint32_t bits = number_types_internal::BitsOf(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  if (magnitude > 0x7f800000u) return {0x7fff};
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65536
  return {
      static_cast<uint16_t>(sign | number_types_internal::RoundToNearestEven(magnitude, 10, 15))};
}

inline E4m3 ToE4m3(float value) {
  const uint32_t bits = number_types_internal::BitsOf(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 24 & 0x80u;
  if (magnitude > 0x7f800000u) return {0x7f};
  if (magnitude >= 0x43e00000u) return {static_cast<uint8_t>(sign | 0x7eu)};  // 448
  return {static_cast<uint8_t>(sign | number_types_internal::RoundToNearestEven(magnitude, 3, 7))};
}

inline float ToFloat(Bf16 value) {
  return number_types_internal::FloatOf(static_cast<uint32_t>(value.bits) << 16);
}

inline float ToFloat(F16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, NaN
    return number_types_internal::FloatOf(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  // Scaled as a power of two, so denormals come out right.
  const float scaled = number_types_internal::FloatOf(magnitude << 13) * 0x1p112f;
  return number_types_internal::FloatOf(sign | number_types_internal::BitsOf(scaled));
}

inline float ToFloat(E4m3 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80u) << 24;
  const uint32_t magnitude = value.bits & 0x7fu;
  if (magnitude == 0x7fu) return number_types_internal::FloatOf(sign | 0x7fc00000u);
  const float scaled = number_types_internal::FloatOf(magnitude << 20) * 0x1p120f;
  return number_types_internal::FloatOf(sign | number_types_internal::BitsOf(scaled));
}

}  // namespace attendant::cuda
