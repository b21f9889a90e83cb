// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/attention_plan.h"
#include "kernels/cuda/kernels/ptx.cuh"

namespace attendant::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// The treatment of scores before the softmax; kernels are compiled for each.
enum class Scores {
  kPlain,      // keys outside the rule's window are masked, by rows
  kDistances,  // likewise, by positions where a task has gaps between them
  kBiased,     // the same, and something is added to every score, or keys are masked one by one
};

// The limits of one query: the keys inside its window, and its rows of the masks.
struct RowMask {
  KeyRange keys;
  const int32_t* positions;  // [keys]: these, not keys' numbers, must be inside `window`; or null
  KeyRange window;
  const float* bias;       // [keys], or by positions where there are some; or null
  const uint8_t* allowed;  // [keys] or null
};

// Whether the task's keys are to be told by their positions. (Window and bias of a task without
// gaps go by rows: the distances are the same.)
__device__ __forceinline__ bool HasGaps(const AttentionArgs& args, const AttentionTask& task) {
  return task.gaps != 0 && args.distance.positions != nullptr;
}

// The window of `rule` around a position.
__device__ __forceinline__ KeyRange WindowAround(const AttentionRule& rule, int position) {
  return {position > rule.keys_before ? position - rule.keys_before : 0,
          INT32_MAX - 1 - position > rule.keys_after ? position + rule.keys_after + 1 : INT32_MAX};
}

// The rule that a task's rows obey: with gaps, positions tell what they see.
template <Scores kScores>
__device__ __forceinline__ AttentionRule RuleOfRows(const AttentionArgs& args,
                                                    const AttentionTask& task) {
  return kScores != Scores::kPlain && HasGaps(args, task) ? AttentionRule() : args.rule;
}

// Of query `query` of the task's sequence; behind its last query the last one's.
template <Scores kScores>
__device__ __forceinline__ RowMask MaskOf(const AttentionArgs& args, const AttentionTask& task,
                                          int head, int query) {
  if (query >= task.queries) query = task.queries - 1;
  RowMask mask = {AllowedKeys(RuleOfRows<kScores>(args, task), query, task.keys),
                  nullptr,
                  {},
                  nullptr,
                  nullptr};
  if (kScores == Scores::kPlain) return mask;
  int position = query;
  if (HasGaps(args, task)) {
    position = args.distance.positions[task.query_row + query];
    mask.positions = args.distance.positions + task.key_row;
    mask.window = WindowAround(args.rule, position);
  }
  if (kScores != Scores::kBiased) return mask;
  if (args.distance.scores != nullptr) {
    mask.bias = args.distance.scores + head * args.distance.stride - position;
  }
  if (args.mask_starts == nullptr) return mask;
  const int64_t start = args.mask_starts[task.sequence];
  if (args.bias != nullptr) mask.bias = args.bias + start + query * args.bias_stride;
  if (args.allowed != nullptr) mask.allowed = args.allowed + start + query * args.allowed_stride;
  return mask;
}

// The score of a key after its mask, -inf where the key does not take part. Biased kernels scale
// here, to add the bias in powers of two; others multiply when they take the power.
template <Scores kScores>
__device__ __forceinline__ float MaskedScore(float score, float scale_log2, const RowMask& mask,
                                             int key) {
  if (key < mask.keys.begin || key >= mask.keys.end) return -INFINITY;
  if (kScores == Scores::kPlain) return score;
  if (kScores == Scores::kBiased && mask.allowed != nullptr && mask.allowed[key] == 0) {
    return -INFINITY;
  }
  if (mask.positions != nullptr) {
    key = mask.positions[key];
    if (key < mask.window.begin || key >= mask.window.end) return -INFINITY;
  }
  if (kScores != Scores::kBiased) return score;
  score *= scale_log2;
  return mask.bias == nullptr ? score : score + mask.bias[key] * kLog2E;
}

// The kernel that these arguments need.
inline Scores ScoresOf(const AttentionArgs& args) {
  if (args.bias != nullptr || args.allowed != nullptr || args.distance.scores != nullptr) {
    return Scores::kBiased;
  }
  return args.distance.positions != nullptr ? Scores::kDistances : Scores::kPlain;
}

// The factor of a power of two's exponent, see MaskedScore.
template <Scores kScores>
__device__ __forceinline__ float ExponentFactor(float scale_log2) {
  return kScores == Scores::kBiased ? 1.0f : scale_log2;
}

// The running softmax of one row: its largest score and the sum of powers so far.
struct RowSoftmax {
  float largest = -INFINITY;
  float sum = 0;

  // Takes the largest of the next scores; returns what all that was summed up so far is multiplied
  // by. `shift` is what to subtract from scores before they are multiplied by `factor`: 0 while
  // every key is masked, as -inf - -inf is no number. (After the product, which the compiler does
  // not round where it adds to it, a large score would differ from itself.)
  __device__ __forceinline__ float Raise(float next_largest, float factor, float& shift) {
    const float raised = fmaxf(largest, next_largest);
    shift = raised == -INFINITY ? 0.0f : raised;
    const float correction = Exp2((largest - shift) * factor);
    largest = raised;
    sum *= correction;
    return correction;
  }
};

// The factor of the weighted sum of values; 0 for a row without keys.
__device__ __forceinline__ float InverseOfSum(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }

}  // namespace attendant::cuda
