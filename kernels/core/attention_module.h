// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"

namespace attendant {

// PyTorch's attention modules: nn.MultiheadAttention, and nn.TransformerEncoder, of which an
// nn.TransformerEncoderLayer is one of one layer without final norm.
enum class ModuleType : uint8_t { kMultiHead, kTransformerEncoder };

struct ModuleConfig {
  ModuleType type = ModuleType::kMultiHead;
  int64_t heads = 0;
  int64_t hidden = 0;     // width of queries, of the projections together, and of the output
  int64_t key_dim = 0;    // width of the keys that come in; hidden in encoders
  int64_t value_dim = 0;  // width of the values that come in; hidden in encoders

  // kTransformerEncoder only.
  int64_t layers = 0;
  int64_t ffn = 0;
  bool norm_first = false;  // normalize a branch's input; else the sum of input and output
  bool final_norm = false;
  Activation activation = Activation::kRelu;
  float layer_norm_epsilon = 0;
  float final_norm_epsilon = 0;  // of final_norm, or 0: layer_norm_epsilon

  int64_t head_dim() const { return hidden / heads; }
};

// OK when every dimension is positive and at most its limit (weight_checks.h), hidden is a multiple
// of heads, and epsilons are in (0, 1). Else INVALID_ARGUMENT naming the field and its value.
absl::Status Validate(const ModuleConfig& config);

// The encoder that a kTransformerEncoder is: of states, with biases or without.
EncoderConfig EncoderOf(const ModuleConfig& config);

// Views of a module's tensors: the encoder's, or `attention`.
struct ModuleWeights : EncoderWeights {
  MultiHeadWeights attention;  // kMultiHead
};

// OK when every tensor is there with the shape that `config` asks for; else INVALID_ARGUMENT naming
// the tensor, its shape and the expected one.
absl::Status ValidateWeights(const ModuleConfig& config, const ModuleWeights& weights);

}  // namespace attendant
