// SPDX-License-Identifier: Apache-2.0
// Qwen3 as an encoder: causal, pre-norm, rotary positions, gated ffn, norms of queries and keys,
// and keys that several heads share.
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace qwen3 {
namespace {

constexpr absl::string_view kTypes[] = {"qwen3"};
constexpr BertFields kFields{.segment_types = nullptr,
                             .head_dim = "head_dim",
                             .shared_keys = true,
                             .checks_causal = true,
                             .epsilon = "rms_norm_eps",
                             .default_epsilon = 1e-6,
                             .default_activation = "silu"};

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

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckLayers(json));
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  EncoderConfig& encoder = config.encoder;
  SetLlamaBlock(encoder);
  encoder.norm_place = NormPlace::kPre;
  encoder.query_key_norm = true;
  encoder.causal = true;
  ATTENDANT_RETURN_IF_ERROR(ReadLlamaRotary(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  return config;
}

constexpr TensorNames Names() {
  TensorNames names = LlamaNames();
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  return names;
}

}  // namespace
}  // namespace qwen3

constexpr Family kQwen3{
    .model_types = qwen3::kTypes, .read_config = qwen3::ReadConfig, .names = qwen3::Names()};

}  // namespace attendant
