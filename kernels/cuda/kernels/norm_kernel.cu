// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <type_traits>

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

// What is normalized: token * scale + position + segment.
template <typename T>
struct EmbedSource {
  const int32_t* token_ids;
  const int32_t* positions;
  const int32_t* segment_ids;
  const T* token_embedding;     // [vocab, hidden]
  const T* position_embedding;  // [max_positions, hidden] or null
  const T* segment_embedding;   // [segment_types, hidden]
  float scale;
  static constexpr bool kIsBranch = false;

  __device__ void Load(int64_t row, int64_t column, int64_t hidden,
                       float (&values)[kVector]) const {
    float position[kVector] = {}, segment[kVector];
    LoadVector(token_embedding + token_ids[row] * hidden + column, values);
    if (position_embedding != nullptr) {
      LoadVector(position_embedding + positions[row] * hidden + column, position);
    }
    LoadVector(segment_embedding + segment_ids[row] * hidden + column, segment);
    for (int i = 0; i < kVector; ++i) values[i] = values[i] * scale + position[i] + segment[i];
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

// What is added to the residual.
template <typename T>
struct BranchSource {
  const T* update;  // [max_tokens, hidden]
  static constexpr bool kIsBranch = true;

  __device__ void Load(int64_t row, int64_t column, int64_t hidden,
                       float (&values)[kVector]) const {
    LoadVector(update + row * hidden + column, values);
  }
};

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

template <typename T, int kWarps, typename Source, bool kRms>
__global__ void __launch_bounds__(kBlockThreads<kWarps>)
    NormKernel(Source source, NormTarget<T> target, const BatchCounts* counts, int64_t hidden) {
  const RowPlace<kWarps> place;
  if (place.row >= counts->tokens) return;
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  float values[kHeld][kVector];
  LoadRow<kWarps>(source, place, hidden, values);
  Normalize<kWarps, kRms>(values, target.norm, target.epsilon, place.thread, hidden, scratch);
  StoreRow<kWarps>(values, target, place, hidden, scratch);
}

// What a row is on its way to states: normalized, added to the residual and kept there.
struct ResidualStep {
  NormWeights norm;  // null: none
  float* residual;   // [max_tokens, hidden] or null
};

template <int kWarps, bool kAdds>
__device__ void KeepResidual(const ResidualStep& step, const RowPlace<kWarps>& place,
                             int64_t hidden, float (&values)[kHeld][kVector]) {
  const auto vectors = static_cast<int>(hidden / kVector);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = place.thread + held * RowPlace<kWarps>::kThreads;
    if (vector >= vectors) continue;
    float* residual = step.residual + place.row * hidden + vector * kVector;
    if (kAdds) {
      float sum[kVector];
      LoadVector(residual, sum);
      for (int i = 0; i < kVector; ++i) values[held][i] += sum[i];
    }
    StoreVector(values[held], residual);
  }
}

template <typename T, int kWarps, typename Source, bool kRms>
__global__ void __launch_bounds__(kBlockThreads<kWarps>)
    BranchNormKernel(Source source, ResidualStep step, NormTarget<T> target,
                     const BatchCounts* counts, int64_t hidden) {
  const RowPlace<kWarps> place;
  if (place.row >= counts->tokens) return;
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  float values[kHeld][kVector];
  LoadRow<kWarps>(source, place, hidden, values);
  if (step.norm.gamma != nullptr) {
    Normalize<kWarps, kRms>(values, step.norm, target.epsilon, place.thread, hidden, scratch);
  }
  if (step.residual != nullptr) {
    KeepResidual<kWarps, Source::kIsBranch>(step, place, hidden, values);
  }
  if (target.norm.gamma != nullptr) {
    Normalize<kWarps, kRms>(values, target.norm, target.epsilon, place.thread, hidden, scratch);
  }
  StoreRow<kWarps>(values, target, place, hidden, scratch);
}

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

template <typename T, bool kRms, typename Source>
cudaError_t LaunchNorm(const Source& source, const NormTarget<T>& target, const BatchCounts* counts,
                       int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return LaunchRows(&NormKernel<T, 1, Source, kRms>, &NormKernel<T, kManyWarps, Source, kRms>,
                    counts, max_tokens, hidden, stream, source, target);
}

template <typename T, bool kRms, typename Source>
cudaError_t LaunchBranch(const Source& source, const ResidualStep& step,
                         const NormTarget<T>& target, const BatchCounts* counts, int64_t max_tokens,
                         int64_t hidden, cudaStream_t stream) {
  return LaunchRows(&BranchNormKernel<T, 1, Source, kRms>,
                    &BranchNormKernel<T, kManyWarps, Source, kRms>, counts, max_tokens, hidden,
                    stream, source, step, target);
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
                                   static_cast<const T*>(args.segment_embedding),
                                   args.token_scale};
    return WithRms(args.rms, [&](auto rms) {
      constexpr bool kRms = decltype(rms)::value;
      if (args.residual == nullptr && args.norm.gamma != nullptr) {
        return LaunchNorm<T, kRms>(source, TargetOf<T>(args, args.norm), counts, max_tokens, hidden,
                                   stream);
      }
      return LaunchBranch<T, kRms>(source, {args.norm, args.residual}, TargetOf<T>(args, args.next),
                                   counts, max_tokens, hidden, stream);
    });
  });
}

cudaError_t LaunchResidualNorm(DType dtype, const ResidualNormArgs& args, const BatchCounts* counts,
                               int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    const ResidualSource<T> source = {static_cast<const T*>(args.states),
                                      static_cast<const T*>(args.update)};
    return WithRms(args.rms, [&](auto rms) {
      return LaunchNorm<T, decltype(rms)::value>(source, TargetOf<T>(args, args.norm), counts,
                                                 max_tokens, hidden, stream);
    });
  });
}

cudaError_t LaunchBranchNorm(DType dtype, const BranchNormArgs& args, const BatchCounts* counts,
                             int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    const BranchSource<T> source = {static_cast<const T*>(args.update)};
    return WithRms(args.rms, [&](auto rms) {
      return LaunchBranch<T, decltype(rms)::value>(source, {args.norm, args.residual},
                                                   TargetOf<T>(args, args.next), counts, max_tokens,
                                                   hidden, stream);
    });
  });
}

}  // namespace attendant::cuda
