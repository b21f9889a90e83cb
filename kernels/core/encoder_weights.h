// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/shape.h"

namespace attendant {

// The weights of one linear map, y = x * weight^T + bias, as PyTorch stores them.
struct LinearWeights {
  TensorView<const float, 2> weight;  // [outputs, inputs]
  TensorView<const float, 1> bias;    // [outputs]
};

struct LayerNormWeights {
  TensorView<const float, 1> gamma;  // [hidden]
  TensorView<const float, 1> beta;   // [hidden]
};

struct EncoderLayerWeights {
  LinearWeights query;             // [hidden, hidden]
  LinearWeights key;               // [hidden, hidden]
  LinearWeights value;             // [hidden, hidden]
  LinearWeights attention_output;  // [hidden, hidden]
  LayerNormWeights attention_norm;
  LinearWeights ffn_up;    // [ffn, hidden]
  LinearWeights ffn_down;  // [hidden, ffn]
  LayerNormWeights ffn_norm;
};

// Views of a whole encoder's tensors. `storage` keeps the memory alive that they point into (a
// mapped file, buffers of converted values); copies share it.
struct EncoderWeights {
  TensorView<const float, 2> token_embedding;     // [vocab, hidden]
  TensorView<const float, 2> position_embedding;  // [max_positions, hidden]
  TensorView<const float, 2> segment_embedding;   // [segment_types, hidden]
  LayerNormWeights embedding_norm;
  std::vector<EncoderLayerWeights> layers;
  std::shared_ptr<const void> storage;
};

// OK when every tensor is there with the shape that `config` asks for; else INVALID_ARGUMENT naming
// the tensor, its shape and the expected one.
absl::Status ValidateWeights(const EncoderConfig& config, const EncoderWeights& weights);

}  // namespace attendant
