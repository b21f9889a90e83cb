// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

// Norms of rows that stay in registers, for the kernels that begin or end with one.
namespace attendant::cuda {

// A row of up to 1024 belongs to one warp, four rows to a block; a longer one to a block of eight
// warps. Either way a thread holds up to kHeld vectors of it in registers, from the load to the
// store: the row is read once. (56 registers with one warp, 62 with eight, nothing spilled; ptxas
// 13.0, sm_80.)
inline constexpr int kHeld = 4;
inline constexpr int kManyWarps = 8;
inline constexpr int kRowsOfOneWarp = 4;  // in a block
inline constexpr int64_t kOneWarpHidden = kHeld * kWarpLanes * kVector;

template <typename T>
struct NormTarget {
  NormWeights norm;
  float epsilon;
  T* states;           // [max_tokens, hidden]
  uint8_t* quantized;  // [max_tokens, hidden] or null
  float* scales;       // [max_tokens] or null
};

// values = (values - mean) / deviation * gamma + beta, for the vectors that this thread holds. With
// kRms the mean is taken for 0.
template <int kWarps, bool kRms>
__device__ void Normalize(float (&values)[kHeld][kVector], const NormWeights& norm, float epsilon,
                          int thread, int64_t hidden, float* scratch) {
  constexpr int kThreads = kWarps * kWarpLanes;
  const auto vectors = static_cast<int>(hidden / kVector);
  const float inverse_hidden = 1.0f / static_cast<float>(hidden);
  float mean = 0;
  if (!kRms) {
    float sum = 0;
#pragma unroll
    for (int held = 0; held < kHeld; ++held) {
      if (thread + held * kThreads >= vectors) continue;
      for (int i = 0; i < kVector; ++i) sum += values[held][i];
    }
    mean = ReduceRow<kWarps>(sum, Sum(), scratch) * inverse_hidden;
  }
  float squares = 0;
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    if (thread + held * kThreads >= vectors) continue;
    for (int i = 0; i < kVector; ++i) {
      values[held][i] -= mean;
      squares += values[held][i] * values[held][i];
    }
  }
  const float variance = ReduceRow<kWarps>(squares, Sum(), scratch) * inverse_hidden;
  const float factor = rsqrtf(variance + epsilon);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = thread + held * kThreads;
    if (vector >= vectors) continue;
    float gamma[kVector], beta[kVector];
    LoadVector(norm.gamma + vector * kVector, gamma);
    LoadVector(norm.beta + vector * kVector, beta);
    for (int i = 0; i < kVector; ++i) {
      values[held][i] = values[held][i] * factor * gamma[i] + beta[i];
    }
  }
}

// The row once more as e4m3 with a scale.
template <int kWarps, typename T>
__device__ void Quantize(const float (&values)[kHeld][kVector], const NormTarget<T>& target,
                         int64_t row, int thread, int64_t hidden, float* scratch) {
  constexpr int kThreads = kWarps * kWarpLanes;
  const auto vectors = static_cast<int>(hidden / kVector);
  float largest = 0;
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    if (thread + held * kThreads >= vectors) continue;
    for (int i = 0; i < kVector; ++i) largest = fmaxf(largest, fabsf(values[held][i]));
  }
  const float scale = QuantizationScale(ReduceRow<kWarps>(largest, Max(), scratch));
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = thread + held * kThreads;
    if (vector >= vectors) continue;
    StoreQuantized(values[held], 1.0f / scale, target.quantized + row * hidden + vector * kVector);
  }
  if (thread == 0) target.scales[row] = scale;
}

// Where a thread's part of a row is.
template <int kWarps>
struct RowPlace {
  static constexpr int kThreads = kWarps * kWarpLanes;
  static constexpr int kBlockRows = kWarps == 1 ? kRowsOfOneWarp : 1;
  int thread = static_cast<int>(threadIdx.x) % kThreads;
  int64_t row = int64_t{blockIdx.x} * kBlockRows + static_cast<int>(threadIdx.x) / kThreads;
};

template <int kWarps, typename Source>
__device__ void LoadRow(const Source& source, const RowPlace<kWarps>& place, int64_t hidden,
                        float (&values)[kHeld][kVector]) {
  const auto vectors = static_cast<int>(hidden / kVector);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = place.thread + held * RowPlace<kWarps>::kThreads;
    if (vector < vectors) source.Load(place.row, vector * kVector, hidden, values[held]);
  }
}

template <int kWarps, typename T>
__device__ void StoreRow(const float (&values)[kHeld][kVector], const NormTarget<T>& target,
                         const RowPlace<kWarps>& place, int64_t hidden, float* scratch) {
  const auto vectors = static_cast<int>(hidden / kVector);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = place.thread + held * RowPlace<kWarps>::kThreads;
    if (vector < vectors) {
      StoreVector(values[held], target.states + place.row * hidden + vector * kVector);
    }
  }
  if (target.quantized != nullptr) {
    Quantize<kWarps>(values, target, place.row, place.thread, hidden, scratch);
  }
}

template <int kWarps>
constexpr int kBlockThreads = RowPlace<kWarps>::kThreads* RowPlace<kWarps>::kBlockRows;

// Puts one of two kernels into the stream, by how wide a row is.
template <typename Kernel, typename... Arguments>
cudaError_t LaunchRows(Kernel of_one_warp, Kernel of_many, const BatchCounts* counts,
                       int64_t max_tokens, int64_t hidden, cudaStream_t stream,
                       const Arguments&... arguments) {
  if (hidden % kVector != 0 || hidden > kManyWarps * kOneWarpHidden) return cudaErrorInvalidValue;
  if (hidden <= kOneWarpHidden) {
    return Launch({CeilDivide(max_tokens, kRowsOfOneWarp), kBlockThreads<1>}, stream, of_one_warp,
                  arguments..., counts, hidden);
  }
  return Launch({max_tokens, kBlockThreads<kManyWarps>, kManyWarps * sizeof(float)}, stream,
                of_many, arguments..., counts, hidden);
}

template <typename T, typename Args>
NormTarget<T> TargetOf(const Args& args, const NormWeights& norm) {
  return {norm, args.epsilon, static_cast<T*>(args.states), args.quantized, args.scales};
}

// call(bool constant)
template <typename Call>
cudaError_t WithRms(bool rms, Call call) {
  return rms ? call(std::true_type()) : call(std::false_type());
}

}  // namespace attendant::cuda
