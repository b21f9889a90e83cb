// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/outputs.h"
#include "kernels/heads/head_layers.h"

namespace attendant {

// The function from a classifier's logits to its scores.
enum class ScoreActivation : uint8_t { kNone, kSigmoid, kSoftmax };

// The head of a sequence classifier, from one vector of a sequence to a logit for each label:
//
//   logits = out(norm(activation(dense(pooled))))      without dense: out(pooled)
//
// A reranker is a classifier with one label. Computed in f32, in an order that the sizes alone
// decide. Immutable after loading, thread-safe.
struct SequenceClassifier {
  Pooling pooling = Pooling::kCls;  // of the last hidden state, not normalized
  // For kLast: tokens of this id at the end of a sequence are ignored, except its first token.
  std::optional<int32_t> padding_id{};
  HeadLinear dense{};  // outputs == 0: there is none
  HeadActivation activation = HeadActivation::kNone;
  HeadNorm norm{};  // of [dense.outputs]
  HeadLinear out{};
  std::vector<std::string> labels{};  // [out.outputs]
  // The default activation, as in transformers' pipeline: sigmoid for one label or a multi-label
  // problem, else softmax.
  ScoreActivation scores = ScoreActivation::kSoftmax;

  int64_t num_labels() const { return out.outputs; }
  // `pooled` is [hidden], `logits` [num_labels()].
  void ComputeLogits(std::span<const float> pooled, std::span<float> logits) const;
};

// Turns logits into scores in place. Softmax subtracts the largest first; no input gives NaN but
// one that has it.
void ApplyActivation(ScoreActivation activation, std::span<float> logits);

}  // namespace attendant
