// SPDX-License-Identifier: Apache-2.0
// The encoder of T5: pre-norm, RMS norms, no biases, a bias of scores by distance and no other
// positions, scores that are not scaled. A checkpoint's decoder is left out.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace t5 {
namespace {

constexpr absl::string_view kTypes[] = {"t5"};
constexpr BertFields kFields{.layers = "num_layers",
                             .heads = "num_heads",
                             .hidden = "d_model",
                             .ffn = "d_ff",
                             .activation = nullptr,  // `feed_forward_proj` says more
                             .max_positions = "n_positions",
                             .default_max_positions = 512,
                             .segment_types = nullptr,
                             .beside_decoder = true,
                             .head_dim = "d_kv",
                             .epsilon = "layer_norm_epsilon",
                             .default_epsilon = 1e-6};

// Transformers makes these two of `feed_forward_proj`; where they are there, they count.
absl::Status CheckFfn(const JsonNode& json, bool gated) {
  ATTENDANT_RETURN_IF_ERROR(CheckText(json, "dense_act_fn", gated ? "gelu_new" : "relu"));
  bool is_gated = gated;
  ATTENDANT_RETURN_IF_ERROR(json.Read("is_gated_act", is_gated));
  if (is_gated == gated) return absl::OkStatus();
  return Unsupported(json, "is_gated_act", is_gated ? "true" : "false", gated ? "true" : "false");
}

absl::Status ReadFfn(const JsonNode& json, EncoderConfig& config) {
  std::string kind = "relu";
  ATTENDANT_RETURN_IF_ERROR(json.Read("feed_forward_proj", kind));
  if (kind != "relu" && kind != "gated-gelu") {
    return Unsupported(json, "feed_forward_proj", Quoted(kind), "relu or gated-gelu");
  }
  config.gated_ffn = kind == "gated-gelu";
  config.activation = config.gated_ffn ? Activation::kGeluTanh : Activation::kRelu;
  return CheckFfn(json, config.gated_ffn);
}

absl::Status ReadAttention(const JsonNode& json, EncoderConfig& config) {
  config.query_scale = 1;
  config.positions = Positions::kNone;
  config.score_bias = ScoreBias::kBuckets;
  config.bias_buckets = 32;
  config.bias_max_distance = 128;
  ATTENDANT_RETURN_IF_ERROR(json.Read("relative_attention_num_buckets", config.bias_buckets));
  return json.Read("relative_attention_max_distance", config.bias_max_distance);
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  EncoderConfig& encoder = config.encoder;
  encoder.norm_place = NormPlace::kPre;
  encoder.norm_kind = NormKind::kRms;
  encoder.embedding_norm = false;
  encoder.final_norm = true;
  encoder.biases = Biases::kOptional;
  config.biases = kNoBiases;
  ATTENDANT_RETURN_IF_ERROR(ReadFfn(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadAttention(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  return config;
}

}  // namespace
}  // namespace t5

constexpr Family kT5{
    .model_types = t5::kTypes,
    .read_config = t5::ReadConfig,
    .names = {.prefix = "transformer.",
              .token_embedding = "shared",
              .own_token_embedding = "encoder.embed_tokens",
              .position_embedding = "",
              .segment_embedding = "",
              .embedding_norm = "",
              .layers = "encoder.block",
              .query = "layer.0.SelfAttention.q",
              .key = "layer.0.SelfAttention.k",
              .value = "layer.0.SelfAttention.v",
              .attention_output = "layer.0.SelfAttention.o",
              .attention_norm = "layer.0.layer_norm",
              .ffn_up = "layer.1.DenseReluDense.wi",
              .ffn_gate = "layer.1.DenseReluDense.wi_0",
              .gated_ffn_up = "layer.1.DenseReluDense.wi_1",
              .ffn_down = "layer.1.DenseReluDense.wo",
              .ffn_norm = "layer.1.layer_norm",
              .final_norm = "encoder.final_layer_norm",
              .score_bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"}};

}  // namespace attendant
