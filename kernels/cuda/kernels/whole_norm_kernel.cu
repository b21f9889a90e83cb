// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_norm.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

// A token's queries are one row of norms, its keys the next.
template <typename T, int kWarps, bool kRms>
__global__ void __launch_bounds__(kBlockThreads<kWarps>)
    WholeNormKernel(WholeNormArgs args, const BatchCounts* counts, int64_t query_width) {
  const RowPlace<kWarps> place;
  const int64_t token = place.row / 2;
  if (token >= counts->tokens) return;
  const bool keys = place.row % 2 != 0;
  const int64_t width = keys ? args.key_width : query_width;
  T* row = static_cast<T*>(args.qkv) + token * args.stride + (keys ? query_width : 0);
  const auto vectors = static_cast<int>(width / kVector);
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  float values[kHeld][kVector];
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = place.thread + held * RowPlace<kWarps>::kThreads;
    if (vector < vectors) LoadVector(row + vector * kVector, values[held]);
  }
  Normalize<kWarps, kRms>(values, keys ? args.key_norm : args.query_norm, args.epsilon,
                          place.thread, width, scratch);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = place.thread + held * RowPlace<kWarps>::kThreads;
    if (vector < vectors) StoreVector(values[held], row + vector * kVector);
  }
}

}  // namespace

cudaError_t LaunchWholeNorm(DType dtype, const WholeNormArgs& args, const BatchCounts* counts,
                            int64_t max_tokens, cudaStream_t stream) {
  if (args.key_width % kVector != 0 || args.key_width > args.query_width) {
    return cudaErrorInvalidValue;
  }
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    return WithRms(args.rms, [&](auto rms) {
      constexpr bool kRms = decltype(rms)::value;
      return LaunchRows(&WholeNormKernel<T, 1, kRms>, &WholeNormKernel<T, kManyWarps, kRms>, counts,
                        2 * max_tokens, args.query_width, stream, args);
    });
  });
}

}  // namespace attendant::cuda
