// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

// One block a token. 16 or 32 lanes have a head: each takes two neighbouring pairs, values i and
// i + head_dim / 2, at a time, and holds them from the load to the store.
constexpr int kThreads = 128;
constexpr int kSteps = 2;
constexpr int64_t kMaxHeadDim = kSteps * kWarpLanes * 4;

struct PairOfTwo {
  Two low, high;
};

__device__ __forceinline__ float SquaresOf(const PairOfTwo& x) {
  return x.low.first * x.low.first + x.low.second * x.low.second + x.high.first * x.high.first +
         x.high.second * x.high.second;
}

__device__ __forceinline__ Two Scaled(Two x, float factor, const float* gamma) {
  return {x.first * factor * gamma[0], x.second * factor * gamma[1]};
}

__device__ __forceinline__ PairOfTwo Turned(const PairOfTwo& x, Two cosine, Two sine) {
  return {{x.low.first * cosine.first - x.high.first * sine.first,
           x.low.second * cosine.second - x.high.second * sine.second},
          {x.high.first * cosine.first + x.low.first * sine.first,
           x.high.second * cosine.second + x.low.second * sine.second}};
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PlaceHeadsKernel(const PlaceHeadsArgs args, const BatchCounts* counts) {
  const int64_t row = blockIdx.x;
  if (row >= counts->tokens) return;
  const int pairs = args.head_dim / 2;
  const int lanes = pairs <= kWarpLanes ? kWarpLanes / 2 : kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int all_heads = args.heads + args.key_heads;
  T* heads = static_cast<T*>(args.qkv) + row * args.stride;
  const float* cosines =
      args.rotary == nullptr ? nullptr : args.rotary + int64_t{args.positions[row]} * args.head_dim;
  // All threads go round as often: heads of a warp are summed up together.
  for (int begin = 0; begin < all_heads; begin += kThreads / lanes) {
    const int head = begin + static_cast<int>(threadIdx.x) / lanes;
    T* values = heads + int64_t{head} * args.head_dim;
    const bool active = head < all_heads;
    PairOfTwo held[kSteps] = {};
    float squares = 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int at = 2 * (lane + step * lanes);
      if (!active || at >= pairs) continue;
      held[step] = {LoadTwo(values + at), LoadTwo(values + pairs + at)};
      squares += SquaresOf(held[step]);
    }
    const float* gamma = head < args.heads ? args.query_norm : args.key_norm;
    float factor = 1;
    if (args.query_norm != nullptr) {
      for (int distance = lanes / 2; distance > 0; distance /= 2) {
        squares += __shfl_xor_sync(0xffffffffu, squares, distance);
      }
      factor = rsqrtf(squares / static_cast<float>(args.head_dim) + args.epsilon);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int at = 2 * (lane + step * lanes);
      if (!active || at >= pairs) continue;
      PairOfTwo x = held[step];
      if (gamma != nullptr) {
        x = {Scaled(x.low, factor, gamma + at), Scaled(x.high, factor, gamma + pairs + at)};
      }
      if (cosines != nullptr) x = Turned(x, LoadTwo(cosines + at), LoadTwo(cosines + pairs + at));
      StoreTwo(x.low, values + at);
      StoreTwo(x.high, values + pairs + at);
    }
  }
}

}  // namespace

cudaError_t LaunchPlaceHeads(DType dtype, const PlaceHeadsArgs& args, const BatchCounts* counts,
                             int64_t max_tokens, cudaStream_t stream) {
  const bool norms = args.query_norm != nullptr;
  if (args.head_dim % 4 != 0 || args.head_dim > kMaxHeadDim ||
      norms != (args.key_norm != nullptr)) {
    return cudaErrorInvalidValue;
  }
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    return Launch({max_tokens, kThreads}, stream, &PlaceHeadsKernel<T>, args, counts);
  });
}

}  // namespace attendant::cuda
