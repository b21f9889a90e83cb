// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/attention_mask.cuh"
#include "kernels/cuda/kernels/launch.cuh"

namespace attendant::cuda {
namespace {

// One block: one task of one head, 64 queries, against 32 keys at a time. A thread computes scores
// of 4 queries and 4 keys, and of the same queries every eighth group of 4 output columns; the 8
// threads of a query are neighbours in a warp.
constexpr int kThreads = 128;
constexpr int kKeys = 32;
constexpr int kRowThreads = 8;                    // of one query
constexpr int kRowStep = kThreads / kRowThreads;  // between a thread's queries
constexpr int kRows = kTaskQueries / kRowStep;    // of a thread
constexpr int kRowScores = kKeys / kRowThreads;   // of a thread and a query
constexpr int kPad = 4;  // numbers between rows, so that 8 rows' 16 bytes are in different banks

// The layout of shared memory, in numbers of f32. Blocks on a multiprocessor of sm_80 (ptxas
// 13.0, nothing spilled but 16 bytes with head_dim 256 and distances):
//
//   head_dim   KiB   registers, biased   blocks, biased
//   32          27          128, 178     4, 2
//   64          43          154, 188     3, 2
//   128         75          186, 225     2, 2
//   256        139          249, 255     1, 1; devices of 99 KiB (8.6, 8.9) refuse it
template <int kHeadDim>
struct Shared {
  static constexpr int kStride = kHeadDim + kPad;
  static constexpr int kPowerStride = kKeys + kPad;
  static constexpr int kQueries = 0;
  static constexpr int kKeyRows = kQueries + kTaskQueries * kStride;
  static constexpr int kValueRows = kKeyRows + kKeys * kStride;
  static constexpr int kPowers = kValueRows + kKeys * kStride;
  static constexpr int kBytes = (kPowers + kTaskQueries * kPowerStride) * 4;
};

// Rows [kCount, head_dim] into shared memory; zeros beyond `rows` and beyond head_dim.
template <int kHeadDim, int kCount>
__device__ void LoadRows(const float* from, int64_t stride, int rows, int head_dim, float* to) {
  constexpr int kFours = kHeadDim / 4;
  for (int i = static_cast<int>(threadIdx.x); i < kCount * kFours; i += kThreads) {
    const int row = i / kFours;
    const int column = i % kFours * 4;
    const bool inside = row < rows && column < head_dim;
    *reinterpret_cast<float4*>(to + row * Shared<kHeadDim>::kStride + column) =
        inside ? *reinterpret_cast<const float4*>(from + row * stride + column)
               : float4{0, 0, 0, 0};
  }
}

__device__ __forceinline__ float4 FourAt(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

// scores[i][j] = q of row + 16 i times k of column + 8 j
template <int kHeadDim>
__device__ __forceinline__ void ComputeScores(const float* shared, int row, int column,
                                              float (&scores)[kRows][kRowScores]) {
  using Layout = Shared<kHeadDim>;
  const float* queries = shared + Layout::kQueries + row * Layout::kStride;
  const float* keys = shared + Layout::kKeyRows + column * Layout::kStride;
  for (auto& row_scores : scores) {
    for (float& score : row_scores) score = 0;
  }
#pragma unroll 2
  for (int d = 0; d < kHeadDim; d += 4) {
    float4 k[kRowScores];
    for (int j = 0; j < kRowScores; ++j)
      k[j] = FourAt(keys + j * kRowThreads * Layout::kStride + d);
    for (int i = 0; i < kRows; ++i) {
      const float4 q = FourAt(queries + i * kRowStep * Layout::kStride + d);
      for (int j = 0; j < kRowScores; ++j) {
        scores[i][j] += q.x * k[j].x + q.y * k[j].y + q.z * k[j].z + q.w * k[j].w;
      }
    }
  }
}

// Scores become powers of two, in shared memory for the other threads of their query; what `out`
// has of earlier keys is brought to the same shift.
template <int kHeadDim>
__device__ __forceinline__ void TakePowers(float factor, int row, int column,
                                           const float (&scores)[kRows][kRowScores],
                                           RowSoftmax (&softmax)[kRows],
                                           float4 (&out)[kRows][kHeadDim / 32], float* shared) {
  for (int i = 0; i < kRows; ++i) {
    float largest = -INFINITY;
    for (float score : scores[i]) largest = fmaxf(largest, score);
    for (int distance = 1; distance < kRowThreads; distance *= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    }
    float shift;
    const float correction = softmax[i].Raise(largest, factor, shift);
    float* powers = shared + Shared<kHeadDim>::kPowers +
                    (row + i * kRowStep) * Shared<kHeadDim>::kPowerStride + column;
    float sum = 0;  // of this thread's keys only
    for (int j = 0; j < kRowScores; ++j) {
      const float power = Exp2((scores[i][j] - shift) * factor);
      sum += power;
      powers[j * kRowThreads] = power;
    }
    softmax[i].sum += sum;
    for (float4& four : out[i]) {
      four = {four.x * correction, four.y * correction, four.z * correction, four.w * correction};
    }
  }
}

__device__ __forceinline__ void AddScaled(float power, const float4& value, float4& sum) {
  sum.x += power * value.x, sum.y += power * value.y;
  sum.z += power * value.z, sum.w += power * value.w;
}

// out[i][c] += powers of row + 16 i times values' columns 32 c + 4 column and the three behind it.
// The sums of these keys begin with zero: key by key, `out` would lose the digits of each.
template <int kHeadDim>
__device__ __forceinline__ void AddValues(const float* shared, int row, int column,
                                          float4 (&out)[kRows][kHeadDim / 32]) {
  using Layout = Shared<kHeadDim>;
  const float* powers = shared + Layout::kPowers + row * Layout::kPowerStride;
  const float* values = shared + Layout::kValueRows + 4 * column;
#pragma unroll
  for (int c = 0; c < kHeadDim / 32; ++c) {
    float4 sums[kRows] = {};
#pragma unroll 1
    for (int key = 0; key < kKeys; key += 2) {
      const float4 first = FourAt(values + key * Layout::kStride + 32 * c);
      const float4 second = FourAt(values + (key + 1) * Layout::kStride + 32 * c);
      for (int i = 0; i < kRows; ++i) {
        const float2 p =
            *reinterpret_cast<const float2*>(powers + i * kRowStep * Layout::kPowerStride + key);
        AddScaled(p.x, first, sums[i]);
        AddScaled(p.y, second, sums[i]);
      }
    }
    for (int i = 0; i < kRows; ++i) AddScaled(1, sums[i], out[i][c]);
  }
}

template <int kHeadDim>
__device__ __forceinline__ void StoreRow(const float4 (&out)[kHeadDim / 32], float sum, int column,
                                         int head_dim, float* to) {
  for (int distance = 1; distance < kRowThreads; distance *= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if (to == nullptr) return;
  const float inverse = InverseOfSum(sum);
  for (int c = 0; c < kHeadDim / 32; ++c) {
    const int d = 32 * c + 4 * column;
    if (d >= head_dim) continue;
    *reinterpret_cast<float4*>(to + d) = {out[c].x * inverse, out[c].y * inverse,
                                          out[c].z * inverse, out[c].w * inverse};
  }
}

template <int kHeadDim, Scores kScores>
__global__ void __launch_bounds__(kThreads, 1)
    AttentionKernel(const AttentionArgs args, const BatchCounts* counts, int heads, int head_dim) {
  using Layout = Shared<kHeadDim>;
  const int index = static_cast<int>(blockIdx.x) / heads;
  const int head = static_cast<int>(blockIdx.x) % heads;
  const int64_t first_column = int64_t{head} * head_dim;
  const int64_t key_column = int64_t{head / args.heads_per_key} * head_dim;
  if (index >= counts->attention_tasks) return;
  const AttentionTask task = args.tasks[index];
  const KeyRange range = TaskKeys(RuleOfRows<kScores>(args, task), task);
  const int row = static_cast<int>(threadIdx.x) / kRowThreads;
  const int column = static_cast<int>(threadIdx.x) % kRowThreads;
  auto* shared = reinterpret_cast<float*>(SharedMemory());
  const auto rows_at = [&](const void* base, int64_t at, int64_t stride, int64_t begin_column) {
    return static_cast<const float*>(base) + at * stride + begin_column;
  };

  const int64_t query_row = int64_t{task.query_row} + task.query_begin;
  LoadRows<kHeadDim, kTaskQueries>(rows_at(args.q, query_row, args.q_stride, first_column),
                                   args.q_stride, task.queries - task.query_begin, head_dim,
                                   shared + Layout::kQueries);
  const float scale_log2 = args.scale * kLog2E;
  RowMask masks[kRows];
  for (int i = 0; i < kRows; ++i) {
    masks[i] = MaskOf<kScores>(args, task, head, task.query_begin + row + i * kRowStep);
  }
  RowSoftmax softmax[kRows];
  float4 out[kRows][kHeadDim / 32] = {};
  for (int begin = range.begin; begin < range.end; begin += kKeys) {
    const int64_t key_row = int64_t{task.key_row} + begin;
    __syncthreads();  // the rows before these have been used
    LoadRows<kHeadDim, kKeys>(rows_at(args.k, key_row, args.k_stride, key_column), args.k_stride,
                              range.end - begin, head_dim, shared + Layout::kKeyRows);
    LoadRows<kHeadDim, kKeys>(rows_at(args.v, key_row, args.v_stride, key_column), args.v_stride,
                              range.end - begin, head_dim, shared + Layout::kValueRows);
    __syncthreads();
    float scores[kRows][kRowScores];
    ComputeScores<kHeadDim>(shared, row, column, scores);
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kRowScores; ++j) {
        scores[i][j] = MaskedScore<kScores>(scores[i][j], scale_log2, masks[i],
                                            begin + column + j * kRowThreads);
      }
    }
    TakePowers<kHeadDim>(ExponentFactor<kScores>(scale_log2), row, column, scores, softmax, out,
                         shared);
    __syncwarp();
    AddValues<kHeadDim>(shared, row, column, out);
  }
  for (int i = 0; i < kRows; ++i) {
    const int at = row + i * kRowStep;
    float* to = task.query_begin + at < task.queries
                    ? static_cast<float*>(args.context) + (query_row + at) * args.context_stride +
                          first_column
                    : nullptr;
    StoreRow<kHeadDim>(out[i], softmax[i].sum, column, head_dim, to);
  }
}

using Kernel = void (*)(AttentionArgs, const BatchCounts*, int, int);

struct Variant {
  Kernel kernels[3];  // by Scores
  int shared_bytes;
};

template <int kHeadDim>
Variant VariantOf() {
  return {
      {&AttentionKernel<kHeadDim, Scores::kPlain>, &AttentionKernel<kHeadDim, Scores::kDistances>,
       &AttentionKernel<kHeadDim, Scores::kBiased>},
      Shared<kHeadDim>::kBytes};
}

Variant VariantFor(int64_t head_dim) {
  if (head_dim <= 32) return VariantOf<32>();
  if (head_dim <= 64) return VariantOf<64>();
  return head_dim <= 128 ? VariantOf<128>() : VariantOf<256>();
}

}  // namespace

cudaError_t LaunchSimtAttention(const AttentionArgs& args, const BatchCounts* counts,
                                int64_t max_tasks, int64_t heads, int64_t head_dim,
                                cudaStream_t stream) {
  const Variant variant = VariantFor(head_dim);
  return Launch({max_tasks * heads, kThreads, variant.shared_bytes}, stream,
                variant.kernels[static_cast<int>(ScoresOf(args))], args, counts,
                static_cast<int>(heads), static_cast<int>(head_dim));
}

cudaError_t PrepareSimtAttention(int64_t head_dim) {
  const Variant variant = VariantFor(head_dim);
  return AllowSharedMemory(variant.shared_bytes,
                           {variant.kernels[0], variant.kernels[1], variant.kernels[2]});
}

}  // namespace attendant::cuda
