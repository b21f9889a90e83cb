// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/llama/llama_block.h"

#include <string>
#include <vector>

#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {

void SetLlamaBlock(EncoderConfig& config) {
  config.norm_kind = NormKind::kRms;
  config.embedding_norm = false;
  config.final_norm = true;
  config.biases = Biases::kOptional;
  config.gated_ffn = true;
}

absl::Status ReadLlamaRotary(const JsonNode& json, EncoderConfig& config) {
  config.positions = Positions::kRotary;
  config.rotary.base = 10000;
  return ReadRopeParameters(json, config);
}

absl::Status ReadLlamaBiases(const JsonNode& json, FamilyConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  ATTENDANT_RETURN_IF_ERROR(json.Read("mlp_bias", config.biases.ffn_up));
  config.biases.ffn_down = config.biases.ffn_up;
  return absl::OkStatus();
}

absl::StatusOr<DecoderMask> ReadMask(const JsonNode& json, absl::string_view bidirectional) {
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(json.Require("model_type", type));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string code, ReadCode(json));
  const bool none = type == bidirectional || !code.empty();
  return none ? DecoderMask::kNone : DecoderMask::kByConfig;
}

absl::StatusOr<FamilyConfig> ReadDecoder(const JsonNode& json, const BertFields& fields,
                                         DecoderMask mask) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, fields));
  EncoderConfig& encoder = config.encoder;
  SetLlamaBlock(encoder);
  encoder.norm_place = NormPlace::kPre;
  if (mask == DecoderMask::kByConfig) {
    encoder.causal = true;
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "use_bidirectional_attention"));
    ATTENDANT_RETURN_IF_ERROR(json.Read("is_causal", encoder.causal));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadLlamaRotary(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  config.biases = kNoBiases;
  return config;
}

absl::Status CheckWholeAttention(const JsonNode& json) {
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "use_sliding_window"));
  return CheckLayerTypesAreFull(json);
}

absl::Status CheckLayerTypesAreFull(const JsonNode& json) {
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

absl::Status ReadAttentionBias(const JsonNode& json, FamilyConfig& config) {
  bool bias = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("attention_bias", bias));
  config.biases = {
      .qkv = bias, .attention_output = bias, .ffn_up = false, .ffn_down = false, .norms = false};
  return absl::OkStatus();
}

}  // namespace attendant
