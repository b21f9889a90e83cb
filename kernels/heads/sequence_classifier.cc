// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/sequence_classifier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attendant {

void SequenceClassifier::ComputeLogits(std::span<const float> pooled,
                                       std::span<float> logits) const {
  if (dense.outputs == 0) return out.Apply(pooled, logits);
  std::vector<float> hidden(static_cast<size_t>(dense.outputs));
  dense.Apply(pooled, hidden);
  for (float& value : hidden) value = Activate(activation, value);
  if (!norm.gamma.empty()) norm.Apply(hidden);
  out.Apply(hidden, logits);
}

void ApplyActivation(ScoreActivation activation, std::span<float> logits) {
  if (activation == ScoreActivation::kSigmoid) {
    for (float& value : logits) value = 1.0f / (1.0f + std::exp(-value));
  }
  if (activation != ScoreActivation::kSoftmax || logits.empty()) return;
  const float largest = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (float& value : logits) sum += value = std::exp(value - largest);
  for (float& value : logits) value /= sum;
}

}  // namespace attendant
