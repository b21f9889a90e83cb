// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/runtime/number_types.h"

// Between f32 and pairs of smaller numbers in one register, in the device's instructions where
// there are such: elsewhere the functions of number_types.h do the same.
namespace attendant::cuda {

// Two numbers, rounded to nearest even. (cvt takes the high one first.)
template <typename T>
__device__ uint32_t Pack(float low, float high);

template <>
__device__ __forceinline__ uint32_t Pack<Bf16>(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<uint32_t>(ToBf16(high).bits) << 16 | ToBf16(low).bits;
#endif
}

template <>
__device__ __forceinline__ uint32_t Pack<F16>(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<uint32_t>(ToF16(high).bits) << 16 | ToF16(low).bits;
#endif
}

// Into the low 16 bits. Devices before 8.9 have no instruction for it.
__device__ __forceinline__ uint32_t PackE4m3(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<uint32_t>(ToE4m3(high).bits) << 8 | ToE4m3(low).bits;
#endif
}

__device__ __forceinline__ float Unpack(Bf16 value) { return ToFloat(value); }  // a shift
__device__ __forceinline__ float Unpack(F16 value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;\n" : "=f"(result) : "h"(value.bits));
  return result;
#else
  return ToFloat(value);
#endif
}

template <typename T>
__device__ __forceinline__ float UnpackLow(uint32_t pair) {
  return Unpack(T{static_cast<uint16_t>(pair & 0xffffu)});
}
template <typename T>
__device__ __forceinline__ float UnpackHigh(uint32_t pair) {
  return Unpack(T{static_cast<uint16_t>(pair >> 16)});
}

}  // namespace attendant::cuda
