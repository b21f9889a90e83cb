// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

class JsonNode;

// The tensors with a bias in the checkpoint; the bias of a norm is its beta.
struct StoredBiases {
  bool qkv = true, attention_output = true, ffn_up = true, ffn_down = true, norms = true;
};
inline constexpr StoredBiases kNoBiases{
    .qkv = false, .attention_output = false, .ffn_up = false, .ffn_down = false, .norms = false};

// A config.json as the encoder computes it.
struct FamilyConfig {
  EncoderConfig encoder;  // passes Validate
  // Row of the stored position table that the encoder's position 0 has; the rows before are unused.
  int64_t first_position = 0;
  StoredBiases biases{};
  // So many stored layers, each of layers that follow one another: layer i is the one of
  // i * layer_groups / layers. 0: one for each layer.
  int64_t layer_groups = 0;
  bool segments = true;  // false: their table is not stored, whatever its name
  // The stored tensor of all three is a head's query, key and value after another's, without a
  // bias, and the two values of a pair that turns lie side by side.
  bool qkv_by_heads = false;
  float norm_offset = 0;         // added to each stored gamma
  bool score_bias_norm = false;  // rows of the stored score bias go through a kLayer norm first
};

// The names of a family's tensors, without ".weight" and ".bias". The defaults are BERT's.
struct TensorNames {
  absl::string_view prefix;         // before all names, or before none: "bert."
  absl::string_view task_prefix{};  // the same where transformers saves a head with another one
  // Empty names: there is no such tensor.
  absl::string_view token_embedding = "embeddings.word_embeddings";
  absl::string_view own_token_embedding{};  // instead, where it is stored
  absl::string_view position_embedding = "embeddings.position_embeddings";
  absl::string_view segment_embedding = "embeddings.token_type_embeddings";
  absl::string_view embedding_norm = "embeddings.LayerNorm";
  absl::string_view embedding_projection{};
  absl::string_view layers = "encoder.layer";  // followed by ".INDEX." and one of these:
  absl::string_view query = "attention.self.query";
  absl::string_view key = "attention.self.key";
  absl::string_view value = "attention.self.value";
  absl::string_view qkv{};  // the three of them in one tensor, instead
  absl::string_view query_norm{};
  absl::string_view key_norm{};
  absl::string_view attention_output = "attention.output.dense";
  absl::string_view attention_norm = "attention.output.LayerNorm";
  absl::string_view attention_output_norm{};
  absl::string_view ffn_up = "intermediate.dense";
  absl::string_view ffn_gate{};      // of a gated ffn
  absl::string_view gated_ffn_up{};  // instead of ffn_up beside it, where the name differs
  absl::string_view ffn_gate_up{};   // gate and up in one tensor, instead
  absl::string_view ffn_up_gate{};   // the same, up first
  absl::string_view ffn_down = "output.dense";
  // Of layers that have experts, instead of the ffn's; the last three are whole names. Of all
  // experts, one below the other: up and, transposed, down.
  absl::string_view router{};
  absl::string_view experts_up{};
  absl::string_view experts_down{};
  absl::string_view experts_bias{};
  absl::string_view ffn_norm = "output.LayerNorm";
  absl::string_view ffn_output_norm{};
  absl::string_view final_norm{};  // outside of layers again
  // Likewise, whole names, of which the first one stored counts: turns of the pairs of a head.
  std::span<const absl::string_view> rotary_rates{};
  absl::string_view score_bias{};
  absl::string_view score_bias_norm{};
};

// The reader of one model family's checkpoints. Each family is a source file in this folder, and a
// line in families.cc.
struct Family {
  std::span<const absl::string_view> model_types{};  // config.json's
  // The AutoModel of auto_map: code that comes with the checkpoint, and computes this family.
  std::span<const absl::string_view> code{};
  // INVALID_ARGUMENT, naming file and field, for what is missing, of the wrong type, out of range
  // or contradictory; UNIMPLEMENTED for an option that is not computed.
  absl::StatusOr<FamilyConfig> (*read_config)(const JsonNode& json);
  TensorNames names;
};

// The code of the checkpoint's own that AutoModel runs, empty: none. It may compute anything,
// whatever the model_type says.
absl::StatusOr<std::string> ReadCode(const JsonNode& json);

// The family of a config.json: by the code that its checkpoint brings, or else by its model_type.
// UNIMPLEMENTED for one that is not known.
absl::StatusOr<const Family*> FindFamily(const JsonNode& json);

}  // namespace attendant
