// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/attention_plan.h"
#include "kernels/cuda/kernels/ptx.cuh"

namespace attendant::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// The limits of one query: the keys inside its window, and its rows of the masks.
struct RowMask {
  KeyRange keys;
  const float* bias;       // [keys] or null
  const uint8_t* allowed;  // [keys] or null
};

// Of query `query` of the task's sequence; behind its last query the last one's.
template <bool kMasked>
__device__ __forceinline__ RowMask MaskOf(const AttentionArgs& args, const AttentionTask& task,
                                          int query) {
  if (query >= task.queries) query = task.queries - 1;
  RowMask mask = {AllowedKeys(args.rule, query, task.keys), nullptr, nullptr};
  if (kMasked) {
    const int64_t start = args.mask_starts[task.sequence];
    if (args.bias != nullptr) mask.bias = args.bias + start + query * args.bias_stride;
    if (args.allowed != nullptr) mask.allowed = args.allowed + start + query * args.allowed_stride;
  }
  return mask;
}

// The score of a key after its mask, -inf where the key does not take part. Masked kernels scale
// here, to add the bias in powers of two; others multiply when they take the power.
template <bool kMasked>
__device__ __forceinline__ float MaskedScore(float score, float scale_log2, const RowMask& mask,
                                             int key) {
  if (key < mask.keys.begin || key >= mask.keys.end) return -INFINITY;
  if (!kMasked) return score;
  if (mask.allowed != nullptr && mask.allowed[key] == 0) return -INFINITY;
  score *= scale_log2;
  return mask.bias == nullptr ? score : score + mask.bias[key] * kLog2E;
}

// The factor of a power of two's exponent, see MaskedScore.
template <bool kMasked>
__device__ __forceinline__ float ExponentFactor(float scale_log2) {
  return kMasked ? 1.0f : scale_log2;
}

// The running softmax of one row: its largest score and the sum of powers so far.
struct RowSoftmax {
  float largest = -INFINITY;
  float sum = 0;

  // Takes the largest of the next scores; returns what all that was summed up so far is multiplied
  // by. `shift` is what to subtract from exponents: 0 while every key is masked, as -inf - -inf is
  // no number.
  __device__ __forceinline__ float Raise(float next_largest, float factor, float& shift) {
    const float raised = fmaxf(largest, next_largest);
    shift = raised == -INFINITY ? 0.0f : raised * factor;
    const float correction = Exp2(largest * factor - shift);
    largest = raised;
    sum *= correction;
    return correction;
  }
};

// The factor of the weighted sum of values; 0 for a row without keys.
__device__ __forceinline__ float InverseOfSum(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }

}  // namespace attendant::cuda
