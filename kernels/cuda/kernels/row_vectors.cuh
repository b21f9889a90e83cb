// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels/conversions.cuh"
#include "kernels/cuda/kernels/ptx.cuh"

// Rows of states in steps of eight numbers, 16 bytes of bf16 and f16, and sums over a row's
// threads.
namespace attendant::cuda {

inline constexpr int kVector = 8;
inline constexpr int kWarpLanes = 32;

template <typename T>
__device__ __forceinline__ void LoadVector(const T* from, float (&values)[kVector]) {
  const uint4 pairs = *reinterpret_cast<const uint4*>(from);
  const uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = UnpackLow<T>(words[i]);
    values[2 * i + 1] = UnpackHigh<T>(words[i]);
  }
}
template <>
__device__ __forceinline__ void LoadVector<float>(const float* from, float (&values)[kVector]) {
  const float4 a = reinterpret_cast<const float4*>(from)[0];
  const float4 b = reinterpret_cast<const float4*>(from)[1];
  values[0] = a.x, values[1] = a.y, values[2] = a.z, values[3] = a.w;
  values[4] = b.x, values[5] = b.y, values[6] = b.z, values[7] = b.w;
}

template <typename T>
__device__ __forceinline__ void StoreVector(const float (&values)[kVector], T* to) {
  *reinterpret_cast<uint4*>(to) = {Pack<T>(values[0], values[1]), Pack<T>(values[2], values[3]),
                                   Pack<T>(values[4], values[5]), Pack<T>(values[6], values[7])};
}
template <>
__device__ __forceinline__ void StoreVector<float>(const float (&values)[kVector], float* to) {
  reinterpret_cast<float4*>(to)[0] = {values[0], values[1], values[2], values[3]};
  reinterpret_cast<float4*>(to)[1] = {values[4], values[5], values[6], values[7]};
}

// Four numbers, 8 bytes of bf16 and f16.
template <typename T>
__device__ __forceinline__ float4 LoadFour(const T* from) {
  const uint2 pairs = *reinterpret_cast<const uint2*>(from);
  return {UnpackLow<T>(pairs.x), UnpackHigh<T>(pairs.x), UnpackLow<T>(pairs.y),
          UnpackHigh<T>(pairs.y)};
}
template <>
__device__ __forceinline__ float4 LoadFour<float>(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

// Two numbers, 4 bytes of bf16 and f16.
struct Two {
  float first, second;
};
template <typename T>
__device__ __forceinline__ Two LoadTwo(const T* from) {
  const uint32_t pair = *reinterpret_cast<const uint32_t*>(from);
  return {UnpackLow<T>(pair), UnpackHigh<T>(pair)};
}
template <>
__device__ __forceinline__ Two LoadTwo<float>(const float* from) {
  return {from[0], from[1]};
}
template <typename T>
__device__ __forceinline__ void StoreTwo(Two values, T* to) {
  *reinterpret_cast<uint32_t*>(to) = Pack<T>(values.first, values.second);
}
template <>
__device__ __forceinline__ void StoreTwo<float>(Two values, float* to) {
  to[0] = values.first, to[1] = values.second;
}

// values * inverse_scale as e4m3.
__device__ __forceinline__ void StoreQuantized(const float (&values)[kVector], float inverse_scale,
                                               uint8_t* to) {
  uint32_t words[2];
  for (int i = 0; i < 2; ++i) {
    const float* four = values + 4 * i;
    words[i] = PackE4m3(four[0] * inverse_scale, four[1] * inverse_scale) |
               PackE4m3(four[2] * inverse_scale, four[3] * inverse_scale) << 16;
  }
  *reinterpret_cast<uint2*>(to) = {words[0], words[1]};
}

// A row's scale by its largest magnitude (kernels.h).
__device__ __forceinline__ float QuantizationScale(float largest) {
  return largest < 1e-30f ? 1.0f : largest / kE4m3Max;
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Over a warp's lanes; every lane gets the same bits.
template <typename Operation>
__device__ __forceinline__ float ReduceWarp(float value, Operation operation) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    value = operation(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// Over kWarps warps, which are the block unless there is one; every thread gets the same bits.
// `scratch` [kWarps] is shared memory.
template <int kWarps, typename Operation>
__device__ __forceinline__ float ReduceRow(float value, Operation operation, float* scratch) {
  value = ReduceWarp(value, operation);
  if (kWarps == 1) return value;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  if (lane == 0) scratch[static_cast<int>(threadIdx.x) / kWarpLanes] = value;
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < kWarps; ++warp) value = operation(value, scratch[warp]);
  __syncthreads();  // the next call writes there again
  return value;
}

}  // namespace attendant::cuda
