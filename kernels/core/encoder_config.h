// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace attendant {

// The feed-forward network's nonlinearity. The two GELUs differ by up to 5e-4: follow the model.
enum class Activation : uint8_t { kGeluErf, kGeluTanh, kRelu };

// The dimensions of a BERT-type encoder (post-norm, learned positions). Plain data, fixed once
// loaded.
struct EncoderConfig {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t vocab = 0;
  int64_t max_positions = 0;  // a sequence's positions are below it
  int64_t segment_types = 0;  // a token's segment id is below it
  float layer_norm_epsilon = 0;
  Activation activation = Activation::kGeluErf;

  int64_t head_dim() const { return hidden / heads; }
};

// OK when every dimension is positive and at most its limit (weight_checks.h; a tensor has fewer
// than 2^31 elements), hidden is a multiple of heads, and epsilon is in (0, 1). Else
// INVALID_ARGUMENT naming the field and its value.
absl::Status Validate(const EncoderConfig& config);

}  // namespace attendant
