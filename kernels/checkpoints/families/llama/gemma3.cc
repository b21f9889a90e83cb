// SPDX-License-Identifier: Apache-2.0
// Gemma 3 as an encoder (EmbeddingGemma): a norm before and after each branch, whose stored gammas
// are too small by 1, rotary positions, layers that attend to a window, gated ffn, shared keys.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace gemma3 {
namespace {

constexpr absl::string_view kTypes[] = {"gemma3_text"};
constexpr BertFields kFields{.activation = "hidden_activation",
                             .segment_types = nullptr,
                             .head_dim = "head_dim",
                             .shared_keys = true,
                             .reads_causal = true,
                             .epsilon = "rms_norm_eps",
                             .default_epsilon = 1e-6,
                             .default_activation = "gelu_pytorch_tanh"};

absl::Status CheckAttention(const JsonNode& json) {
  bool bidirectional = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("use_bidirectional_attention", bidirectional));
  if (!bidirectional) return Unsupported(json, "use_bidirectional_attention", "false", "true");
  // Where it is false, transformers gives local layers another mask.
  bool causal = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("is_causal", causal));
  if (!causal) return Unsupported(json, "is_causal", "false", "true");
  for (const char* field : {"attn_logit_softcapping", "rope_scaling"}) {
    if (json.Has(field)) return Unsupported(json, field, "there", "none");
  }
  return absl::OkStatus();
}

// Transformers 5 writes `layer_types`, earlier versions of which layers the last is global. The
// `_sliding_window_pattern` that some wrote beside the list counts for nothing.
absl::Status ReadLocalLayers(const JsonNode& json, EncoderConfig& config) {
  int64_t window = 4096, step = 6;
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "sliding_window", 0, window));
  config.window = window / 2;
  if (json.Has("layer_types")) return ReadLayerTypes(json, config);
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "sliding_window_pattern", 1, step));
  for (int64_t i = 0; i < config.layers; ++i) {
    config.local_layers[static_cast<size_t>(i)] = (i + 1) % step != 0;
  }
  return absl::OkStatus();
}

absl::Status ReadRotary(const JsonNode& json, EncoderConfig& config) {
  config.positions = Positions::kRotary;
  config.rotary.base = 1e6;
  config.local_rotary.base = 10000;
  ATTENDANT_RETURN_IF_ERROR(json.Read("rope_theta", config.rotary.base));
  ATTENDANT_RETURN_IF_ERROR(json.Read("rope_local_base_freq", config.local_rotary.base));
  return ReadRopeOfLayerTypes(json, config);
}

absl::Status ReadScales(const JsonNode& json, EncoderConfig& config) {
  int64_t scalar = 256;
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "query_pre_attn_scalar", 1, scalar));
  config.query_scale = 1 / std::sqrt(static_cast<float>(scalar));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  return absl::OkStatus();
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckAttention(json));
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  EncoderConfig& encoder = config.encoder;
  SetLlamaBlock(encoder);
  encoder.norm_place = NormPlace::kBoth;
  encoder.query_key_norm = QueryKeyNorm::kHead;
  ATTENDANT_RETURN_IF_ERROR(ReadLocalLayers(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadRotary(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadScales(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  config.norm_offset = 1;
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  return config;
}

constexpr TensorNames Names() {
  TensorNames names = LlamaNames();
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  names.attention_output_norm = "post_attention_layernorm";
  names.ffn_norm = "pre_feedforward_layernorm";
  names.ffn_output_norm = "post_feedforward_layernorm";
  return names;
}

}  // namespace
}  // namespace gemma3

constexpr Family kGemma3{
    .model_types = gemma3::kTypes, .read_config = gemma3::ReadConfig, .names = gemma3::Names()};

}  // namespace attendant
