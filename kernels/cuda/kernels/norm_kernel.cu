// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_norm.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

// The input of an embedding's norm: token * scale * its own scale + position + segment.
template <typename T>
struct EmbedSource {
  const int32_t* token_ids;
  const int32_t* positions;
  const int32_t* segment_ids;
  const T* token_embedding;     // [vocab, hidden]
  const T* position_embedding;  // [max_positions, hidden] or null
  const T* segment_embedding;   // [segment_types, hidden]
  float scale;
  const float* scales;  // [max_tokens] or null
  static constexpr bool kIsBranch = false;

  __device__ void Load(int64_t row, int64_t column, int64_t hidden,
                       float (&values)[kVector]) const {
    float position[kVector] = {}, segment[kVector];
    LoadVector(token_embedding + token_ids[row] * hidden + column, values);
    if (position_embedding != nullptr) {
      LoadVector(position_embedding + positions[row] * hidden + column, position);
    }
    LoadVector(segment_embedding + segment_ids[row] * hidden + column, segment);
    const float factor = scales == nullptr ? scale : scale * scales[row];
    for (int i = 0; i < kVector; ++i) values[i] = values[i] * factor + position[i] + segment[i];
  }
};

// The input of a norm behind a residual: states + update.
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

// The input of a norm on a branch, which is then added to the residual.
template <typename T>
struct BranchSource {
  const T* update;  // [max_tokens, hidden]
  static constexpr bool kIsBranch = true;

  __device__ void Load(int64_t row, int64_t column, int64_t hidden,
                       float (&values)[kVector]) const {
    LoadVector(update + row * hidden + column, values);
  }
};

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

// The last steps of a row before it becomes states: norm, sum with the residual, its new value.
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

// values += states, for the vectors that this thread holds.
template <int kWarps, typename T>
__device__ void AddStates(const T* states, const RowPlace<kWarps>& place, int64_t hidden,
                          float (&values)[kHeld][kVector]) {
  const auto vectors = static_cast<int>(hidden / kVector);
#pragma unroll
  for (int held = 0; held < kHeld; ++held) {
    const int vector = place.thread + held * RowPlace<kWarps>::kThreads;
    if (vector >= vectors) continue;
    float more[kVector];
    LoadVector(states + place.row * hidden + vector * kVector, more);
    for (int i = 0; i < kVector; ++i) values[held][i] += more[i];
  }
}

template <typename T, int kWarps, bool kRms>
__global__ void __launch_bounds__(kBlockThreads<kWarps>)
    SecondNormKernel(const T* update, NormWeights branch_norm, NormTarget<T> target,
                     const BatchCounts* counts, int64_t hidden) {
  const RowPlace<kWarps> place;
  if (place.row >= counts->tokens) return;
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  const ResidualSource<T> source = {target.states, update};
  float values[kHeld][kVector];
  LoadRow<kWarps>(source, place, hidden, values);
  Normalize<kWarps, kRms>(values, branch_norm, target.epsilon, place.thread, hidden, scratch);
  AddStates<kWarps>(target.states, place, hidden, values);
  Normalize<kWarps, kRms>(values, target.norm, target.epsilon, place.thread, hidden, scratch);
  StoreRow<kWarps>(values, target, place, hidden, scratch);
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
                                   args.token_scale,
                                   args.token_scales};
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

cudaError_t LaunchSecondNorm(DType dtype, const ResidualNormArgs& args,
                             const NormWeights& branch_norm, const BatchCounts* counts,
                             int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    return WithRms(args.rms, [&](auto rms) {
      constexpr bool kRms = decltype(rms)::value;
      return LaunchRows(&SecondNormKernel<T, 1, kRms>, &SecondNormKernel<T, kManyWarps, kRms>,
                        counts, max_tokens, hidden, stream, static_cast<const T*>(args.update),
                        branch_norm, TargetOf<T>(args, args.norm));
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
