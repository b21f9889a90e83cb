// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/head_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace attendant {

// In lanes, so that the compiler can use vectors without changing the order of the sums.
float HeadDot(std::span<const float> a, const float* b) {
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

void HeadLinear::Apply(std::span<const float> input, std::span<float> output) const {
  for (size_t i = 0; i < output.size(); ++i) {
    output[i] = HeadDot(input, weight.data() + i * input.size()) + (bias.empty() ? 0.0f : bias[i]);
  }
}

void HeadLinear::ApplyRows(std::span<const float> input, std::span<float> output) const {
  const auto columns = static_cast<size_t>(inputs), width = static_cast<size_t>(outputs);
  const size_t rows = output.size() / width;
  for (size_t i = 0; i < width; ++i) {
    const float* from = weight.data() + i * columns;
    const float added = bias.empty() ? 0.0f : bias[i];
    for (size_t row = 0; row < rows; ++row) {
      output[row * width + i] = HeadDot(input.subspan(row * columns, columns), from) + added;
    }
  }
}

void HeadNorm::Apply(std::span<float> values) const {
  const auto count = static_cast<float>(values.size());
  float mean = 0;
  for (const float value : values) mean += value;
  mean /= count;
  float variance = 0;
  for (const float value : values) variance += (value - mean) * (value - mean);
  const float scale = 1.0f / std::sqrt(variance / count + epsilon);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = (values[i] - mean) * scale * gamma[i] + (beta.empty() ? 0.0f : beta[i]);
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
    case HeadActivation::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
  }
  return x;
}

}  // namespace attendant
