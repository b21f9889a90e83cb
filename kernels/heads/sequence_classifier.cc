// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/sequence_classifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace attendant {
namespace {

// In lanes, so that the compiler can use vectors without changing the order of the sums.
float Dot(std::span<const float> a, const float* b) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0;
  for (const float lane : sums) sum += lane;
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void Compute(const SequenceClassifier::Linear& linear, std::span<const float> input,
             std::span<float> output) {
  for (size_t i = 0; i < output.size(); ++i) {
    const float bias = linear.bias.empty() ? 0.0f : linear.bias[i];
    output[i] = Dot(input, linear.weight.data() + i * input.size()) + bias;
  }
}

float Activate(HeadActivation activation, float x) {
  switch (activation) {
    case HeadActivation::kNone:
      return x;
    case HeadActivation::kTanh:
      return std::tanh(x);
    case HeadActivation::kRelu:
      return std::max(x, 0.0f);
    case HeadActivation::kGeluErf:
      return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
  }
  return x;
}

void Normalize(const SequenceClassifier& head, std::span<float> values) {
  const auto count = static_cast<float>(values.size());
  float mean = 0;
  for (const float value : values) mean += value;
  mean /= count;
  float variance = 0;
  for (const float value : values) variance += (value - mean) * (value - mean);
  const float scale = 1.0f / std::sqrt(variance / count + head.norm_epsilon);
  for (size_t i = 0; i < values.size(); ++i) {
    const float beta = head.norm_beta.empty() ? 0.0f : head.norm_beta[i];
    values[i] = (values[i] - mean) * scale * head.norm_gamma[i] + beta;
  }
}

}  // namespace

void SequenceClassifier::ComputeLogits(std::span<const float> pooled,
                                       std::span<float> logits) const {
  if (dense.outputs == 0) return Compute(out, pooled, logits);
  std::vector<float> hidden(static_cast<size_t>(dense.outputs));
  Compute(dense, pooled, hidden);
  for (float& value : hidden) value = Activate(activation, value);
  if (!norm_gamma.empty()) Normalize(*this, hidden);
  Compute(out, hidden, logits);
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
