// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

// The layers that heads are made of. Computed in f32, in an order that the sizes alone decide.
namespace attendant {

// a b, over a.size() values.
float HeadDot(std::span<const float> a, const float* b);

enum class HeadActivation : uint8_t { kNone, kTanh, kRelu, kGeluErf, kSigmoid };

// weight x + bias
struct HeadLinear {
  int64_t outputs = 0, inputs = 0;
  std::vector<float> weight{};  // [outputs, inputs]
  std::vector<float> bias{};    // [outputs], or empty

  // `input` is [inputs], `output` [outputs].
  void Apply(std::span<const float> input, std::span<float> output) const;
  // Like Apply for several rows: `input` is [rows, inputs], `output` [rows, outputs]. Reads the
  // weight once. A row has the same bits as alone.
  void ApplyRows(std::span<const float> input, std::span<float> output) const;
};

struct HeadNorm {
  std::vector<float> gamma{};  // [width], or empty: no norm
  std::vector<float> beta{};   // [width], or empty
  float epsilon = 0;

  void Apply(std::span<float> values) const;  // [width], in place
};

float Activate(HeadActivation activation, float x);

}  // namespace attendant
