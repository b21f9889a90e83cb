// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/shape.h"

namespace attendant {

// The weights of one linear map, y = x * weight^T + bias, as PyTorch stores them. An empty bias, as
// an empty beta, stands for zeros.
struct LinearWeights {
  TensorView<const float, 2> weight;  // [outputs, inputs]
  TensorView<const float, 1> bias;    // [outputs]
};

struct LayerNormWeights {
  TensorView<const float, 1> gamma;  // [hidden]
  TensorView<const float, 1> beta;   // [hidden]
};

// Value `index` of a bias or beta.
inline float BiasAt(const TensorView<const float, 1>& bias, int64_t index) {
  return bias.empty() ? 0 : bias.data()[index];
}

struct MultiHeadWeights {
  LinearWeights query;             // [hidden, hidden]
  LinearWeights key;               // [hidden, key_dim], which is hidden in an encoder
  LinearWeights value;             // [hidden, value_dim], likewise
  LinearWeights attention_output;  // [hidden, hidden]
};

// A feed-forward network of a mixture of experts. Without biases.
struct ExpertWeights {
  TensorView<const float, 2> up;    // [ffn, hidden]
  TensorView<const float, 2> down;  // [ffn, hidden], transposed: it maps [ffn] to [hidden]
};

// The weights of one layer. Projections: query [context_width, hidden], key and value [key_width,
// hidden], output [hidden, context_width].
struct EncoderLayerWeights : MultiHeadWeights {
  LayerNormWeights attention_norm;
  LayerNormWeights attention_output_norm;  // of kBoth or a second_attention_norm
  // Norms of query and key, if the config has them. kHead: gamma alone, [head_dim]. kWhole:
  // [context_width] for queries, [key_width] for keys.
  LayerNormWeights query_norm, key_norm;
  LinearWeights ffn_gate;  // [ffn, hidden], where the ffn is gated
  LinearWeights ffn_up;    // [ffn, hidden]
  LinearWeights ffn_down;  // [hidden, ffn]
  // Instead of these three, where the layer has experts.
  TensorView<const float, 2> router;        // [experts, hidden]
  std::vector<ExpertWeights> experts;       // [experts]
  TensorView<const float, 1> experts_bias;  // [hidden], or empty: zeros
  LayerNormWeights ffn_norm;
  LayerNormWeights ffn_output_norm;  // of kBoth
};

// True if two layers are views of the same tensors, not copies, so that both can share packed
// weights.
bool SameTensors(const EncoderLayerWeights& a, const EncoderLayerWeights& b);

// Views of a whole encoder's tensors. `storage` keeps the memory alive that they point into (a
// mapped file, buffers of converted values); copies share it.
struct EncoderWeights {
  // kTokens only.
  TensorView<const float, 2> token_embedding;     // [vocab, input_width]
  TensorView<const float, 2> position_embedding;  // [max_positions, input_width], of kLearned
  TensorView<const float, 2> segment_embedding;   // [segment_types, input_width]
  LayerNormWeights embedding_norm;                // [input_width], where the config has one
  LinearWeights embedding_projection;             // [hidden, embedding_width], likewise
  std::vector<EncoderLayerWeights> layers;        // perhaps several of the same tensors
  LayerNormWeights final_norm;                    // where the config has one
  // [bias_buckets, heads] of kBuckets, [bias_buckets, hidden] of kDisentangled
  TensorView<const float, 2> score_bias;
  std::shared_ptr<const void> storage;
};

// OK when every tensor is there with the shape that `config` asks for; else INVALID_ARGUMENT naming
// the tensor, its shape and the expected one.
absl::Status ValidateWeights(const EncoderConfig& config, const EncoderWeights& weights);

}  // namespace attendant
