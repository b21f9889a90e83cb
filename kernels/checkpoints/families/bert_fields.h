// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

class JsonNode;

// The names of config.json's fields in BERT and its relatives.
struct BertFields {
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* hidden = "hidden_size";
  const char* ffn = "intermediate_size";
  const char* activation = "hidden_act";  // null: the family's own, none is read
  const char* max_positions = "max_position_embeddings";
  int64_t default_max_positions = 0;              // 0: it is required
  const char* segment_types = "type_vocab_size";  // null: a family without segments, which has one
  int64_t default_segment_types = 2;
  // Above 0, the default of `embedding_size`: embeddings may be narrower than states, and have a
  // projection. 0: they are as wide.
  int64_t default_embedding_width = 0;
  const char* position_type = "absolute";  // the one value of position_embedding_type, and default
  bool beside_decoder = false;             // true: `is_encoder_decoder` may be true
  const char* head_dim = nullptr;          // null: hidden / heads; else it is required
  bool optional_head_dim = false;          // true: hidden / heads where `head_dim` is absent
  bool shared_keys = false;                // true: `num_key_value_heads` is read, and required
  bool optional_shared_keys = false;       // true: as many as heads where that is absent
  bool reads_causal = false;               // true: the family reads `is_causal`; else it is false
  const char* epsilon = "layer_norm_eps";  // null: none is read, it is the default
  double default_epsilon = 1e-12;
  const char* default_activation = "gelu";
};

// Reads BERT's encoder: post-norm, learned positions, everything with biases. With transformers'
// defaults when absent: segment types, epsilon, activation, position_embedding_type. Errors as of
// Family::read_config.
absl::StatusOr<EncoderConfig> ReadBertFields(const JsonNode& json, const BertFields& fields);

// Takes the rows of the position table up to `pad_token_id`, else up to row 1, from the positions
// that tokens have: token n has row n + pad_token_id + 1. INVALID_ARGUMENT where none is left.
absl::Status ReadPositionsBehindPadding(const JsonNode& json, FamilyConfig& config);

// OK where Validate is; else its error behind the name of the file. For families that change what
// ReadBertFields returned.
absl::Status ValidateConfig(const JsonNode& json, const EncoderConfig& config);

}  // namespace attendant
