// SPDX-License-Identifier: Apache-2.0
// Nomic's BERT: rotary positions and a gated ffn, or, in v2, a plain one and layers with experts.
// Transformers 5 writes BERT's fields; the code that comes with the other checkpoints, v2's among
// them, writes GPT-2's (`n_embd`), and an option for all that it can do.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace nomic_bert {
namespace {

constexpr absl::string_view kTypes[] = {"nomic_bert"};
constexpr absl::string_view kCode[] = {
    "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel",
    "modeling_hf_nomic_bert.NomicBertModel"};
constexpr double kDefaultBase = 1000;
constexpr int64_t kDefaultTrainedPositions = 2048;

absl::Status ReadEncoder(const JsonNode& json, EncoderConfig& config) {
  ATTENDANT_ASSIGN_OR_RETURN(config, ReadBertFields(json, {.default_activation = "silu"}));
  config.gated_ffn = true;
  config.rotary.base = kDefaultBase;
  ATTENDANT_RETURN_IF_ERROR(ReadRopeParameters(json, config));
  int64_t head_dim = config.head_dim();
  ATTENDANT_RETURN_IF_ERROR(json.Read("head_dim", head_dim));
  if (head_dim == config.head_dim()) return absl::OkStatus();
  return Unsupported(json, "head_dim", absl::StrCat(head_dim), absl::StrCat(config.head_dim()));
}

// Refuses the options of the model's old code that are not computed here.
absl::Status CheckOptions(const JsonNode& json) {
  for (const char* field : {"prenorm", "use_rms_norm", "causal", "parallel_block",
                            "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx",
                            "expert_choice_router", "moe_normalize_expert_weights"}) {
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, field));
  }
  if (json.Has("rotary_emb_scale_base")) {
    return Unsupported(json, "rotary_emb_scale_base", "there", "none");
  }
  double fraction = 0;
  ATTENDANT_RETURN_IF_ERROR(json.Read("rotary_emb_fraction", fraction));
  if (fraction != 1) return Unsupported(json, "rotary_emb_fraction", absl::StrCat(fraction), "1");
  bool scaled = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("scale_attn_weights", scaled));
  return scaled ? absl::OkStatus() : Unsupported(json, "scale_attn_weights", "false", "true");
}

absl::Status ReadOldActivation(const JsonNode& json, EncoderConfig& config) {
  std::string activation = "gelu_new";
  ATTENDANT_RETURN_IF_ERROR(json.Read("activation_function", activation));
  config.activation = activation == "swiglu" ? Activation::kSilu : Activation::kGeluErf;
  config.gated_ffn = activation != "gelu";
  if (activation == "gelu" || activation == "geglu" || activation == "swiglu") {
    return absl::OkStatus();
  }
  return Unsupported(json, "activation_function", Quoted(activation), "gelu, geglu or swiglu");
}

// Every n-th layer has experts, from the second one on. One by one the code has none.
absl::Status ReadExperts(const JsonNode& json, EncoderConfig& config) {
  int64_t step = 0;
  ATTENDANT_RETURN_IF_ERROR(json.Read("moe_every_n_layers", step));
  for (int64_t i = 1; step > 1 && i < config.layers; i += std::min(step, config.layers)) {
    config.expert_layers.set(static_cast<size_t>(i));
  }
  if (config.expert_layers.none()) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckNumber(json, "num_shared_experts", 0));
  ATTENDANT_RETURN_IF_ERROR(CheckNumber(json, "ffn_div", 1));
  ATTENDANT_RETURN_IF_ERROR(json.Require("num_experts", config.experts));
  return json.Require("moe_top_k", config.experts_per_token);
}

// With a `rotary_scaling_factor`, sequences longer than those of the training turn by other angles
// than shorter ones: they are not computed. Where it is absent the code has the factor 1, which
// does so too; null is none.
absl::Status LimitPositions(const JsonNode& json, EncoderConfig& config) {
  const std::string factor = "rotary_scaling_factor", trained_field = "max_trained_positions";
  if (json.IsNull(factor)) return absl::OkStatus();
  const bool absent = !json.Has(factor);
  int64_t trained = kDefaultTrainedPositions;
  ATTENDANT_RETURN_IF_ERROR(absent ? json.Read(trained_field, trained)
                                   : json.Require(trained_field, trained));
  config.max_positions = std::min(config.max_positions, trained);
  return absl::OkStatus();
}

absl::Status ReadOldEncoder(const JsonNode& json, FamilyConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckOptions(json));
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {.layers = "n_layer",
                                                                   .heads = "n_head",
                                                                   .hidden = "n_embd",
                                                                   .ffn = "n_inner",
                                                                   .max_positions = "n_positions",
                                                                   .epsilon = "layer_norm_epsilon",
                                                                   .default_epsilon = 1e-5}));
  ATTENDANT_RETURN_IF_ERROR(ReadOldActivation(json, config.encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadExperts(json, config.encoder));
  ATTENDANT_RETURN_IF_ERROR(LimitPositions(json, config.encoder));
  config.encoder.rotary.base = kDefaultBase;
  ATTENDANT_RETURN_IF_ERROR(json.Read("rotary_emb_base", config.encoder.rotary.base));
  bool qkv = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("qkv_proj_bias", qkv));
  config.biases.qkv = config.biases.attention_output = qkv;
  config.biases.ffn_up = config.biases.ffn_down = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("mlp_fc1_bias", config.biases.ffn_up));
  return json.Read("mlp_fc2_bias", config.biases.ffn_down);
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  config.biases = {.qkv = false, .attention_output = false, .ffn_up = false, .ffn_down = false};
  if (json.Has("n_embd")) {
    ATTENDANT_RETURN_IF_ERROR(ReadOldEncoder(json, config));
  } else {
    ATTENDANT_RETURN_IF_ERROR(ReadEncoder(json, config.encoder));
  }
  config.encoder.biases = Biases::kOptional;
  config.encoder.positions = Positions::kRotary;
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace nomic_bert

constexpr Family kNomicBert{.model_types = nomic_bert::kTypes,
                            .code = nomic_bert::kCode,
                            .read_config = nomic_bert::ReadConfig,
                            .names = {.prefix = "bert.",
                                      .task_prefix = "nomic_bert.",
                                      .embedding_norm = "emb_ln",
                                      .layers = "encoder.layers",
                                      .qkv = "attn.Wqkv",
                                      .attention_output = "attn.out_proj",
                                      .attention_norm = "norm1",
                                      .ffn_up = "mlp.fc1",
                                      .ffn_gate = "mlp.fc12",
                                      .gated_ffn_up = "mlp.fc11",
                                      .ffn_down = "mlp.fc2",
                                      .router = "mlp.router.layer",
                                      .experts_up = "mlp.experts.mlp.w1",
                                      .experts_down = "mlp.experts.mlp.w2",
                                      .experts_bias = "mlp.experts.bias",
                                      .ffn_norm = "norm2"}};

}  // namespace attendant
