// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/core/encoder_config.h"

// Llama's block, which several families have with small changes.
namespace attendant {

class JsonNode;

// RMS norms without an embedding norm, a final norm, gated ffn, biases where the family says so.
void SetLlamaBlock(EncoderConfig& config);

// `rope_theta` or `rope_parameters`, with base 10,000 where neither is there, and `rope_scaling`:
// UNIMPLEMENTED for other types than llama3.
absl::Status ReadLlamaRotary(const JsonNode& json, EncoderConfig& config);

// `attention_bias`, of all linear layers of attention, by default false. The ffn and the norms have
// none.
absl::Status ReadAttentionBias(const JsonNode& json, FamilyConfig& config);

// The same, and `mlp_bias`, of all linear layers of the ffn, likewise.
absl::Status ReadLlamaBiases(const JsonNode& json, FamilyConfig& config);

// The fields of decoders; families require other ones of heads.
inline constexpr BertFields kDecoderFields{.segment_types = nullptr,
                                           .head_dim = "head_dim",
                                           .shared_keys = true,
                                           .reads_causal = true,
                                           .epsilon = "rms_norm_eps",
                                           .default_epsilon = 1e-6,
                                           .default_activation = "silu"};

// The same, where `head_dim` may be absent.
constexpr BertFields OptionalHeadDim() {
  BertFields fields = kDecoderFields;
  fields.optional_head_dim = true;
  return fields;
}

// The attention mask of a decoder: causal or bidirectional.
enum class DecoderMask : uint8_t {
  kByConfig,  // where `is_causal` is not false. `use_bidirectional_attention` is UNIMPLEMENTED: the
              // classes of transformers itself do not read it
  kNone,      // whatever the config says
};

// kNone where the model type is `bidirectional`, or the checkpoint brings the code of that one.
absl::StatusOr<DecoderMask> ReadMask(const JsonNode& json, absl::string_view bidirectional);

// A decoder: the block with norms before its branches, without biases.
absl::StatusOr<FamilyConfig> ReadDecoder(const JsonNode& json, const BertFields& fields,
                                         DecoderMask mask = DecoderMask::kByConfig);

// UNIMPLEMENTED where `use_sliding_window` or `layer_types` says that a layer attends to a window.
absl::Status CheckWholeAttention(const JsonNode& json);

// UNIMPLEMENTED where `layer_types` names a layer without full attention.
absl::Status CheckLayerTypesAreFull(const JsonNode& json);

// The tensor names of a Llama checkpoint.
constexpr TensorNames LlamaNames() {
  return {.prefix = "model.",
          .token_embedding = "embed_tokens",
          .position_embedding = "",
          .segment_embedding = "",
          .embedding_norm = "",
          .layers = "layers",
          .query = "self_attn.q_proj",
          .key = "self_attn.k_proj",
          .value = "self_attn.v_proj",
          .attention_output = "self_attn.o_proj",
          .attention_norm = "input_layernorm",
          .ffn_up = "mlp.up_proj",
          .ffn_gate = "mlp.gate_proj",
          .ffn_down = "mlp.down_proj",
          .ffn_norm = "post_attention_layernorm",
          .final_norm = "norm"};
}

}  // namespace attendant
