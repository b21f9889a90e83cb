// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/cuda_interface.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

// One block a sequence. Its columns are taken 256 at a time, eight to a lane; each warp goes
// through every eighth token, and the warps' results are put together in their order.
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpLanes;
constexpr int kColumns = kWarpLanes * kVector;
static_assert(kColumns == kThreads);  // each thread puts one column together

// The sum or the largest of one warp's tokens [begin + warp, end), every kWarps-th.
template <typename T>
__device__ void PoolTokens(const T* states, int64_t hidden, int begin, int end, bool largest,
                           float (&values)[kVector]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  for (int i = 0; i < kVector; ++i) values[i] = largest ? -INFINITY : 0.0f;
#pragma unroll 4
  for (int token = begin + warp; token < end; token += kWarps) {
    float more[kVector];
    LoadVector(states + token * hidden, more);
    for (int i = 0; i < kVector; ++i) {
      values[i] = largest ? fmaxf(values[i], more[i]) : values[i] + more[i];
    }
  }
}

// Pooled column `column` + this thread, of the columns that the block is at; 0 beyond `hidden`.
template <typename T>
__device__ float PoolColumn(const T* states, int64_t hidden, int64_t column, int begin, int end,
                            int pooling, float* scratch) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t mine = column + thread % kWarpLanes * kVector;
  const bool largest = pooling == ATTENDANT_CUDA_POOL_MAX;
  float values[kVector] = {};
  if (mine < hidden) PoolTokens(states + mine, hidden, begin, end, largest, values);
  __syncthreads();  // what was there has been read
  for (int i = 0; i < kVector; ++i) scratch[thread * kVector + i] = values[i];
  __syncthreads();
  float result = scratch[thread];
  for (int warp = 1; warp < kWarps; ++warp) {
    const float more = scratch[warp * kColumns + thread];
    result = largest ? fmaxf(result, more) : result + more;
  }
  return pooling == ATTENDANT_CUDA_POOL_MEAN ? result / static_cast<float>(end - begin) : result;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PoolKernel(const T* states, const int32_t* seq_starts, const PoolTask* tasks, float* pooled,
               const BatchCounts* counts, int64_t hidden) {
  const int64_t sequence = blockIdx.x;
  if (sequence >= counts->sequences) return;
  const PoolTask task = tasks[sequence];
  int begin = seq_starts[sequence];
  int end = seq_starts[sequence + 1];
  if (task.pooling == ATTENDANT_CUDA_POOL_NONE || begin == end) return;
  if (task.pooling == ATTENDANT_CUDA_POOL_CLS) end = begin + 1;
  if (task.pooling == ATTENDANT_CUDA_POOL_LAST) begin = end - 1;

  auto* scratch = reinterpret_cast<float*>(SharedMemory());  // [kWarps, kColumns]
  const auto thread = static_cast<int>(threadIdx.x);
  float* out = pooled + sequence * hidden;
  float squares = 0;
  for (int64_t column = 0; column < task.dims; column += kColumns) {
    const float value = PoolColumn(states, hidden, column, begin, end, task.pooling, scratch);
    if (column + thread >= task.dims) continue;
    out[column + thread] = value;
    squares += value * value;
  }
  if (task.normalize == 0) return;
  __syncthreads();  // the columns have been read
  const float length = sqrtf(ReduceRow<kWarps>(squares, Sum(), scratch));
  const float scale = 1.0f / fmaxf(length, 1e-12f);
  for (int64_t j = thread; j < task.dims; j += kThreads) out[j] *= scale;
}

}  // namespace

cudaError_t LaunchPool(DType dtype, const PoolArgs& args, const BatchCounts* counts,
                       int64_t max_sequences, int64_t hidden, cudaStream_t stream) {
  if (hidden % kVector != 0) return cudaErrorInvalidValue;
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    return Launch({max_sequences, kThreads, kWarps * kColumns * sizeof(float)}, stream,
                  &PoolKernel<T>, static_cast<const T*>(args.states), args.seq_starts, args.tasks,
                  args.pooled, counts, hidden);
  });
}

}  // namespace attendant::cuda
