// SPDX-License-Identifier: Apache-2.0
// Qwen3 as an encoder: causal, pre-norm, rotary positions, gated ffn, norms of queries and keys,
// and keys that several heads share.
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace {

constexpr absl::string_view kTypes[] = {"qwen3"};
constexpr BertFields kFields{.segment_types = nullptr,
                             .shared_keys = true,
                             .epsilon = "rms_norm_eps",
                             .default_epsilon = 1e-6,
                             .default_activation = "silu"};
constexpr double kDefaultBase = 10000;

absl::Status CheckLayers(const JsonNode& json) {
  for (const char* field : {"use_sliding_window", "use_bidirectional_attention"}) {
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, field));
  }
  bool causal = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("is_causal", causal));
  if (!causal) return Unsupported(json, "is_causal", "false", "true");
  if (!json.Has("layer_types")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, json.Field("layer_types"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> types, list.Elements());
  for (const JsonNode& node : types) {
    std::string type;
    ATTENDANT_RETURN_IF_ERROR(node.Get(type));
    if (type != "full_attention") {
      return Unsupported(json, "layer_types", Quoted(type), "full_attention");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadRotary(const JsonNode& json, Rotary& rotary) {
  if (json.Has("rope_scaling")) return Unsupported(json, "rope_scaling", "there", "none");
  rotary.base = kDefaultBase;
  ATTENDANT_RETURN_IF_ERROR(json.Read("rope_theta", rotary.base));
  if (!json.Has("rope_parameters")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode parameters, json.Field("rope_parameters"));
  return ReadRopeParameters(parameters, rotary.base, rotary);
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckLayers(json));
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  EncoderConfig& encoder = config.encoder;
  encoder.norm_place = NormPlace::kPre;
  encoder.norm_kind = NormKind::kRms;
  encoder.embedding_norm = false;
  encoder.final_norm = true;
  encoder.biases = Biases::kOptional;
  encoder.gated_ffn = true;
  encoder.query_key_norm = true;
  encoder.causal = true;
  encoder.positions = Positions::kRotary;
  ATTENDANT_RETURN_IF_ERROR(ReadRotary(json, encoder.rotary));
  bool attention_bias = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("attention_bias", attention_bias));
  config.biases = {.qkv = attention_bias,
                   .attention_output = attention_bias,
                   .ffn_up = false,
                   .ffn_down = false,
                   .norms = false};
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  return config;
}

}  // namespace

constexpr Family kQwen3{.model_types = kTypes,
                        .read_config = ReadConfig,
                        .names = {.prefix = "model.",
                                  .token_embedding = "embed_tokens",
                                  .position_embedding = "",
                                  .segment_embedding = "",
                                  .embedding_norm = "",
                                  .layers = "layers",
                                  .query = "self_attn.q_proj",
                                  .key = "self_attn.k_proj",
                                  .value = "self_attn.v_proj",
                                  .query_norm = "self_attn.q_norm",
                                  .key_norm = "self_attn.k_norm",
                                  .attention_output = "self_attn.o_proj",
                                  .attention_norm = "input_layernorm",
                                  .ffn_up = "mlp.up_proj",
                                  .ffn_gate = "mlp.gate_proj",
                                  .ffn_down = "mlp.down_proj",
                                  .ffn_norm = "post_attention_layernorm",
                                  .final_norm = "norm"}};

}  // namespace attendant
