// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/llama/llama_block.h"

#include "kernels/checkpoints/families/rotary_fields.h"
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
  return ReadRopeParameters(json, config.rotary);
}

absl::Status ReadAttentionBias(const JsonNode& json, FamilyConfig& config) {
  bool bias = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("attention_bias", bias));
  config.biases = {
      .qkv = bias, .attention_output = bias, .ffn_up = false, .ffn_down = false, .norms = false};
  return absl::OkStatus();
}

}  // namespace attendant
