// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/outputs.h"

namespace attendant {

// The nonlinearity of a head's hidden layer.
enum class HeadActivation : uint8_t { kNone, kTanh, kRelu, kGeluErf };

// How scores are made from a classifier's logits.
enum class ScoreActivation : uint8_t { kNone, kSigmoid, kSoftmax };

// The head of a sequence classifier, from one vector of a sequence to a logit for each label:
//
//   logits = out(norm(activation(dense(pooled))))      without dense: out(pooled)
//
// A reranker is a classifier with one label. Computed in f32, in an order that the sizes alone
// decide. Immutable after loading, thread-safe.
struct SequenceClassifier {
  struct Linear {
    int64_t outputs = 0, inputs = 0;
    std::vector<float> weight{};  // [outputs, inputs]
    std::vector<float> bias{};    // [outputs], or empty
  };

  Pooling pooling = Pooling::kCls;  // of the last hidden state, not normalized
  Linear dense{};                   // outputs == 0: there is none
  HeadActivation activation = HeadActivation::kNone;
  std::vector<float> norm_gamma{};  // [dense.outputs], or empty: no norm
  std::vector<float> norm_beta{};   // the same, or empty
  float norm_epsilon = 0;
  Linear out{};
  std::vector<std::string> labels{};  // [out.outputs]
  // What transformers' pipeline applies: sigmoid for one label or a multi-label problem, else
  // softmax.
  ScoreActivation scores = ScoreActivation::kSoftmax;

  int64_t num_labels() const { return out.outputs; }
  // `pooled` is [hidden], `logits` [num_labels()].
  void ComputeLogits(std::span<const float> pooled, std::span<float> logits) const;
};

// Turns logits into scores in place. Softmax subtracts the largest first; no input gives NaN but
// one that has it.
void ApplyActivation(ScoreActivation activation, std::span<float> logits);

}  // namespace attendant
