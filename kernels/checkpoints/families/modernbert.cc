// SPDX-License-Identifier: Apache-2.0
// ModernBERT: pre-norm, rotary positions, layers that attend to a window, gated ffn. Transformers 5
// writes `layer_types` and `rope_parameters`, earlier versions `global_attn_every_n_layers`,
// `global_rope_theta` and `local_rope_theta`.
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace modernbert {
namespace {

constexpr absl::string_view kTypes[] = {"modernbert"};
constexpr BertFields kFields{.activation = "hidden_activation",
                             .segment_types = nullptr,
                             .epsilon = "norm_eps",
                             .default_epsilon = 1e-5};

absl::Status ReadLocalLayers(const JsonNode& json, EncoderConfig& config) {
  int64_t local_attention = 128;
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "local_attention", 0, local_attention));
  config.window = local_attention / 2;
  // In transformers, setting this field sets the other to twice its value.
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "sliding_window", 0, config.window));
  if (json.Has("layer_types")) return ReadLayerTypes(json, config);
  int64_t step = 3;
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "global_attn_every_n_layers", 1, step));
  for (int64_t i = 0; i < config.layers; ++i) {
    config.local_layers[static_cast<size_t>(i)] = i % step != 0;
  }
  return absl::OkStatus();
}

// Versions of transformers disagree on what a null base of local layers means.
absl::Status CheckLocalBase(const JsonNode& json) {
  if (!json.IsNull("local_rope_theta")) return absl::OkStatus();
  return Unsupported(json, "local_rope_theta", "null", "a number");
}

absl::Status ReadRotary(const JsonNode& json, EncoderConfig& config) {
  if (json.Has("rope_scaling")) return Unsupported(json, "rope_scaling", "there", "none");
  ATTENDANT_RETURN_IF_ERROR(CheckLocalBase(json));
  config.positions = Positions::kRotary;
  config.rotary.base = 160000;
  config.local_rotary.base = 10000;
  ATTENDANT_RETURN_IF_ERROR(json.Read("global_rope_theta", config.rotary.base));
  ATTENDANT_RETURN_IF_ERROR(json.Read("local_rope_theta", config.local_rotary.base));
  return ReadRopeOfLayerTypes(json, config);
}

absl::Status ReadBiases(const JsonNode& json, FamilyConfig& config) {
  bool attention = false, ffn = false, norms = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("attention_bias", attention));
  ATTENDANT_RETURN_IF_ERROR(json.Read("mlp_bias", ffn));
  ATTENDANT_RETURN_IF_ERROR(json.Read("norm_bias", norms));
  config.encoder.biases = Biases::kOptional;
  config.biases = {.qkv = attention,
                   .attention_output = attention,
                   .ffn_up = ffn,
                   .ffn_down = ffn,
                   .norms = norms};
  return absl::OkStatus();
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  config.encoder.norm_place = NormPlace::kPre;
  config.encoder.first_attention_norm = false;
  config.encoder.final_norm = true;
  config.encoder.gated_ffn = true;
  ATTENDANT_RETURN_IF_ERROR(ReadLocalLayers(json, config.encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadRotary(json, config.encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadBiases(json, config));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace modernbert

constexpr Family kModernBert{.model_types = modernbert::kTypes,
                             .read_config = modernbert::ReadConfig,
                             .names = {.prefix = "model.",
                                       .token_embedding = "embeddings.tok_embeddings",
                                       .position_embedding = "",
                                       .segment_embedding = "",
                                       .embedding_norm = "embeddings.norm",
                                       .layers = "layers",
                                       .qkv = "attn.Wqkv",
                                       .attention_output = "attn.Wo",
                                       .attention_norm = "attn_norm",
                                       .ffn_gate_up = "mlp.Wi",
                                       .ffn_down = "mlp.Wo",
                                       .ffn_norm = "mlp_norm",
                                       .final_norm = "final_norm"}};

}  // namespace attendant
