// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "kernels/cuda/runtime/number_types.h"

namespace attendant::cuda {

// Puts one kernel into the stream: a grid of `blocks` in one dimension, none when that is 0.
struct LaunchShape {
  int64_t blocks;
  int threads;  // of a block
  int64_t shared_bytes = 0;
};
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(const LaunchShape& shape, cudaStream_t stream, void (*kernel)(Parameters...),
                   Arguments&&... arguments) {
  if (shape.blocks == 0) return cudaSuccess;
  if (shape.blocks < 0 || shape.blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  cudaLaunchConfig_t config = {};
  config.gridDim.x = static_cast<unsigned>(shape.blocks);
  config.blockDim.x = static_cast<unsigned>(shape.threads);
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// Lets each of the kernels have so much shared memory on the current device; above 48 KiB they must
// be allowed to.
template <typename Kernel>
cudaError_t AllowSharedMemory(int bytes, std::initializer_list<Kernel> kernels) {
  for (Kernel kernel : kernels) {
    const cudaError_t error = cudaFuncSetAttribute(
        reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// call(T()) with the type that states of `format` have: float, Bf16 or F16.
template <typename Call>
auto WithStateType(DType dtype, Call call) {
  switch (StateDType(dtype)) {
    case DType::kBf16:
      return call(Bf16());
    case DType::kF16:
      return call(F16());
    default:
      return call(float());
  }
}

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace attendant::cuda
