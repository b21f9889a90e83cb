// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "tests/support/cuda_emulation/grid.h"

// As much of the CUDA language as kernels/cuda uses, for an ordinary compiler: kernels run on
// tests/support/cuda_emulation/grid.h. `extern __shared__` has no twin; ptx.cuh has a function.

#define ATTENDANT_CUDA_EMULATED 1

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

// Where the thread that runs is.
using attendant::cuda_emulation::blockDim;
using attendant::cuda_emulation::blockIdx;
using attendant::cuda_emulation::gridDim;
using attendant::cuda_emulation::threadIdx;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
  uint32_t x, y;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace attendant::cuda_emulation {

// Checks a launch as the runtime does, then puts it into its stream.
cudaError_t LaunchKernel(const cudaLaunchConfig_t& config, const void* function,
                         std::function<void()> kernel);

inline void CheckMask(unsigned mask) {
  if (mask != 0xffffffffu) Fault("a warp's function for some of its lanes only");
}

template <typename T>
struct Exchange {
  T value;
  int source;  // lane
};

// Each lane's value of its source lane.
template <typename T>
T Shuffle(const char* name, unsigned mask, T value, int source) {
  CheckMask(mask);
  Exchange<T> exchange = {value, source & 31};
  WithWarp(name, &exchange, [](void* const(&operands)[32]) {
    T values[32];
    for (int lane = 0; lane < 32; ++lane) {
      values[lane] = static_cast<Exchange<T>*>(operands[lane])->value;
    }
    for (void* operand : operands) {
      auto* lane = static_cast<Exchange<T>*>(operand);
      lane->value = values[lane->source];
    }
  });
  return exchange.value;
}

}  // namespace attendant::cuda_emulation

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return attendant::cuda_emulation::LaunchKernel(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, ... values = std::decay_t<Parameters>(arguments)] { kernel(values...); });
}

inline void __syncthreads() { attendant::cuda_emulation::WaitForBlock(); }

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  attendant::cuda_emulation::CheckMask(mask);
  attendant::cuda_emulation::WithWarp("__syncwarp", nullptr, [](void* const(&)[32]) {});
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  return attendant::cuda_emulation::Shuffle("__shfl_xor_sync", mask, value,
                                            attendant::cuda_emulation::Lane() ^ lane_mask);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return attendant::cuda_emulation::Shuffle("__shfl_sync", mask, value, lane);
}

inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
