// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

// A row of up to 1024 belongs to one warp, four rows to a block; a longer one to a block of eight
// warps. Either way a thread holds up to kHeld vectors of it in registers, from the load to the
// store: the row is read once. (56 registers with one warp, 62 with eight, nothing spilled; ptxas
// 13.0, sm_80.)
constexpr int kHeld = 4;
constexpr int kManyWarps = 8;
constexpr int kRowsOfOneWarp = 4;  // in a block
constexpr int64_t kOneWarpHidden = kHeld * kWarpLanes * kVector;

// What is normalized: token + position + segment.
template <typename T>
struct EmbedSource {
  const int32_t* token_ids;
  const int32_t* positions;
  const int32_t* segment_ids;
  const T* token_embedding;     // [vocab, hidden]
  const T* position_embedding;  // [max_positions, hidden]
  const T* segment_embedding;   // [segment_types, hidden]

  __device__ void Load(int64_t row, int64_t column, int64_t hidden,
                       float (&values)[kVector]) const {
    float position[kVector], segment[kVector];
    LoadVector(token_embedding + token_ids[row] * hidden + column, values);
    LoadVector(position_embedding + positions[row] * hidden + column, position);
    LoadVector(segment_embedding + segment_ids[row] * hidden + column, segment);
    for (int i = 0; i < kVector; ++i) values[i] = values[i] + position[i] + segment[i];
  }
};

// What is normalized: states + update.
template <typename T>
struct ResidualSource {
  const T* states;  // [max_tokens, hidden]
  const T* update;  // [max_tokens, hidden]

  __device__ void Load(int64_t row, int64_t column, int64_t hidden,
                       float (&values)[kVector]) const {
    float more[kVector];
    LoadVector(states + row * hidden + column, values);
    LoadVector(update + row * hidden + column, more);
    for (int i = 0; i < kVector; ++i) values[i] += more[i];
  }
};

template <typename T>
struct NormTarget {
  const float* gamma;  // [hidden]
  const float* beta;   // [hidden]
  float epsilon;
  T* states;           // [max_tokens, hidden]
  uint8_t* quantized;  // [max_tokens, hidden] or null
  float* scales;       // [max_tokens] or null
};

// values = (values - mean) / deviation * gamma + beta, for the vectors that this thread holds.
template <int kWarps, typename T>
__device__ void Normalize(float (&values)[kHeld][kVector], const NormTarget<T>& target, int thread,
                          int64_t hidden, float* scratch) {
  constexpr int kThreads = kWarps * kWarpLanes;
  const auto vectors = static_cast<int>(hidden / kVector);
  const float inverse_hidden = 1.0f / static_cast<float>(hidden);
  float sum = 0;
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    if (thread + held * kThreads >= vectors) continue;
    for (int i = 0; i < kVector; ++i) sum += values[held][i];
  }
  const float mean = ReduceRow<kWarps>(sum, Sum(), scratch) * inverse_hidden;
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
  const float factor = rsqrtf(variance + target.epsilon);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = thread + held * kThreads;
    if (vector >= vectors) continue;
    float gamma[kVector], beta[kVector];
    LoadVector(target.gamma + vector * kVector, gamma);
    LoadVector(target.beta + vector * kVector, beta);
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

template <typename T, int kWarps, typename Source>
__global__ void __launch_bounds__(kWarps == 1 ? kRowsOfOneWarp * kWarpLanes : kWarps * kWarpLanes)
    NormKernel(Source source, NormTarget<T> target, const BatchCounts* counts, int64_t hidden) {
  constexpr int kThreads = kWarps * kWarpLanes;
  const auto thread = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t row = int64_t{blockIdx.x} * (kWarps == 1 ? kRowsOfOneWarp : 1) +
                      static_cast<int>(threadIdx.x) / kThreads;
  if (row >= counts->tokens) return;
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  const auto vectors = static_cast<int>(hidden / kVector);
  float values[kHeld][kVector];
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = thread + held * kThreads;
    if (vector < vectors) source.Load(row, vector * kVector, hidden, values[held]);
  }
  Normalize<kWarps>(values, target, thread, hidden, scratch);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = thread + held * kThreads;
    if (vector < vectors) {
      StoreVector(values[held], target.states + row * hidden + vector * kVector);
    }
  }
  if (target.quantized != nullptr) {
    Quantize<kWarps>(values, target, row, thread, hidden, scratch);
  }
}

template <typename T, typename Source, typename Args>
cudaError_t LaunchNorm(const Source& source, const Args& args, const BatchCounts* counts,
                       int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  const NormTarget<T> target = {args.gamma,     args.beta,
                                args.epsilon,   static_cast<T*>(args.states),
                                args.quantized, args.scales};
  if (hidden % kVector != 0 || hidden > kManyWarps * kOneWarpHidden) return cudaErrorInvalidValue;
  if (hidden <= kOneWarpHidden) {
    return Launch({CeilDivide(max_tokens, kRowsOfOneWarp), kRowsOfOneWarp * kWarpLanes}, stream,
                  &NormKernel<T, 1, Source>, source, target, counts, hidden);
  }
  return Launch({max_tokens, kManyWarps * kWarpLanes, kManyWarps * sizeof(float)}, stream,
                &NormKernel<T, kManyWarps, Source>, source, target, counts, hidden);
}

}  // namespace

cudaError_t LaunchEmbed(DType dtype, const EmbedArgs& args, const BatchCounts* counts,
                        int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    const EmbedSource<T> source = {args.token_ids,
                                   args.positions,
                                   args.segment_ids,
                                   static_cast<const T*>(args.token_embedding),
                                   static_cast<const T*>(args.position_embedding),
                                   static_cast<const T*>(args.segment_embedding)};
    return LaunchNorm<T>(source, args, counts, max_tokens, hidden, stream);
  });
}

cudaError_t LaunchResidualNorm(DType dtype, const ResidualNormArgs& args, const BatchCounts* counts,
                               int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    const ResidualSource<T> source = {static_cast<const T*>(args.states),
                                      static_cast<const T*>(args.update)};
    return LaunchNorm<T>(source, args, counts, max_tokens, hidden, stream);
  });
}

}  // namespace attendant::cuda
