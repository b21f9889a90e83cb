// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

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

  int64_t head_dim() const { return hidden / heads; }
};

// OK when every dimension is positive and at most its limit (weight_checks.h), hidden is a multiple
// of heads, and epsilon is in (0, 1). Else INVALID_ARGUMENT naming the field and its value.
absl::Status Validate(const ModuleConfig& config);

// A bias or beta that is empty stands for zeros.
struct MultiHeadWeights {
  LinearWeights query;   // [hidden, hidden]
  LinearWeights key;     // [hidden, key_dim]
  LinearWeights value;   // [hidden, value_dim]
  LinearWeights output;  // [hidden, hidden]
};

struct TransformerLayerWeights {
  MultiHeadWeights attention;
  LayerNormWeights attention_norm;
  LinearWeights ffn_up;    // [ffn, hidden]
  LinearWeights ffn_down;  // [hidden, ffn]
  LayerNormWeights ffn_norm;
};

// Views of a module's tensors. `storage` keeps the memory alive that they point into; copies share
// it.
struct ModuleWeights {
  MultiHeadWeights attention;                   // kMultiHead
  std::vector<TransformerLayerWeights> layers;  // kTransformerEncoder
  LayerNormWeights final_norm;                  // where the config has one
  std::shared_ptr<const void> storage;
};

// OK when every tensor is there with the shape that `config` asks for; else INVALID_ARGUMENT naming
// the tensor, its shape and the expected one.
absl::Status ValidateWeights(const ModuleConfig& config, const ModuleWeights& weights);

}  // namespace attendant
