// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/attention_mask.cuh"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

// Few ask for weights, so this is plain: a block has 8 queries, two to a warp, and goes through the
// keys 32 at a time, a key to a lane. Scores wait in `out` for their row's sum; what a lane wrote
// there only it reads again.
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpLanes;
constexpr int kQueries = 8;               // of a block
constexpr int kRows = kQueries / kWarps;  // of a warp
constexpr int kKeys = kWarpLanes;         // at a time
constexpr int kPad = 4;  // numbers between rows, so that 8 rows' 16 bytes are in different banks

// Rows [count, head_dim] from row `begin` on as f32; those from `len` on become zeros.
template <typename T>
__device__ void LoadRows(const T* from, int64_t stride, int64_t begin, int count, int64_t len,
                         int head_dim, float* to) {
  const int fours = head_dim / 4;
  for (int i = static_cast<int>(threadIdx.x); i < count * fours; i += kThreads) {
    const int row = i / fours;
    const int column = i % fours * 4;
    float4 four = {0, 0, 0, 0};
    if (begin + row < len) four = LoadFour(from + (begin + row) * stride + column);
    *reinterpret_cast<float4*>(to + row * (head_dim + kPad) + column) = four;
  }
}

__device__ __forceinline__ float Dot(const float* a, const float* b, int count) {
  float sum = 0;
  for (int i = 0; i < count; i += 4) {
    const float4 x = *reinterpret_cast<const float4*>(a + i);
    const float4 y = *reinterpret_cast<const float4*>(b + i);
    sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
  }
  return sum;
}

// One row's scores, in powers of two, become weights.
__device__ void TakeSoftmax(float largest, int64_t len, int lane, float* row) {
  largest = ReduceWarp(largest, Max());
  if (largest == -INFINITY) largest = 0;  // no key takes part
  float sum = 0;
  for (int64_t key = lane; key < len; key += kWarpLanes) {
    row[key] = Exp2(row[key] - largest);
    sum += row[key];
  }
  const float inverse = InverseOfSum(ReduceWarp(sum, Sum()));
  for (int64_t key = lane; key < len; key += kWarpLanes) row[key] *= inverse;
}

// The score after what the distance adds to it, in powers of two; -inf for a key that does not take
// part.
__device__ __forceinline__ float PlacedScore(const AttentionWeightsArgs& args, float score,
                                             int64_t query, int64_t key) {
  if (key >= args.keys) return -INFINITY;
  const int32_t* positions = args.distance.positions;
  const int64_t distance =
      positions == nullptr ? key - query : int64_t{positions[key]} - positions[query];
  if (-distance > args.rule.keys_before || distance > args.rule.keys_after) return -INFINITY;
  score *= args.scale * kLog2E;
  return args.distance.scores == nullptr ? score : score + args.distance.scores[distance] * kLog2E;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    AttentionWeightsKernel(const AttentionWeightsArgs args, int64_t len, int head_dim) {
  const auto* q = static_cast<const T*>(args.q);
  const auto* k = static_cast<const T*>(args.k);
  float* out = args.out;
  const int stride = head_dim + kPad;
  auto* queries = reinterpret_cast<float*>(SharedMemory());  // [kQueries, stride]
  float* keys = queries + kQueries * stride;                 // [kKeys, stride]
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpLanes * kRows;
  const int64_t query = args.first_query + int64_t{blockIdx.x} * kQueries;
  const int64_t end = args.first_query + args.queries;
  LoadRows(q, args.q_stride, query, kQueries, len, head_dim, queries);
  float largest[kRows];
  for (float& row_largest : largest) row_largest = -INFINITY;
  for (int64_t begin = 0; begin < len; begin += kKeys) {
    __syncthreads();  // the keys before these have been used
    LoadRows(k, args.k_stride, begin, kKeys, len, head_dim, keys);
    __syncthreads();
    if (begin + lane >= len) continue;
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = query + warp_row + i;
      if (row >= end) continue;
      const float dot = Dot(queries + (warp_row + i) * stride, keys + lane * stride, head_dim);
      const float score = PlacedScore(args, dot, row, begin + lane);
      out[(row - args.first_query) * len + begin + lane] = score;
      largest[i] = fmaxf(largest[i], score);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    const int64_t row = query + warp_row + i;
    if (row < end) TakeSoftmax(largest[i], len, lane, out + (row - args.first_query) * len);
  }
}

}  // namespace

cudaError_t LaunchAttentionWeights(DType dtype, const AttentionWeightsArgs& args, int64_t len,
                                   int64_t head_dim, cudaStream_t stream) {
  if (!HasAttention(dtype, head_dim)) return cudaErrorInvalidValue;
  const int64_t shared_bytes = (kQueries + kKeys) * (head_dim + kPad) * int64_t{sizeof(float)};
  AttentionWeightsArgs all = args;
  if (all.queries == 0) all.queries = len;
  if (all.keys == 0) all.keys = len;
  static_assert((kQueries + kKeys) * (kMaxSimtHeadDim + kPad) * sizeof(float) <= 48 << 10);
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    return Launch({CeilDivide(all.queries, kQueries), kThreads, shared_bytes}, stream,
                  &AttentionWeightsKernel<T>, all, len, static_cast<int>(head_dim));
  });
}

}  // namespace attendant::cuda
