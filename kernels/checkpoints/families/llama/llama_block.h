// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/core/encoder_config.h"

// Llama's block, which several families have with small changes.
namespace attendant {

class JsonNode;

// RMS norms without an embedding norm, a final norm, gated ffn, biases where the family says so.
void SetLlamaBlock(EncoderConfig& config);

// `rope_theta` or `rope_parameters`, with base 10,000 where neither is there. UNIMPLEMENTED for
// `rope_scaling`.
absl::Status ReadLlamaRotary(const JsonNode& json, EncoderConfig& config);

// `attention_bias`, of all linear layers of attention, by default false. The ffn and the norms have
// none.
absl::Status ReadAttentionBias(const JsonNode& json, FamilyConfig& config);

// The names of its tensors.
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
