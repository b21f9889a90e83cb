// SPDX-License-Identifier: Apache-2.0
// GTE v1.5 and its relatives, called "new" by the code that came with them: rotary positions and a
// gated ffn.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace gte {
namespace {

constexpr char kTransformersType[] = "gte";  // of configs without code
constexpr absl::string_view kTypes[] = {kTransformersType, "new"};
constexpr absl::string_view kCode[] = {"Alibaba-NLP/new-impl--modeling.NewModel",
                                       "modeling.NewModel", "modeling_hf_alibaba_nlp_gte.GteModel"};

// The scaling "ntk" by a factor f: the base becomes base * f, and all rates are divided by
// f^(2 / head_dim).
absl::Status ReadScaling(const JsonNode& scaling, int64_t head_dim, Rotary& rotary) {
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(scaling.Require("type", type));
  if (type != "ntk") return Unsupported(scaling, "type", Quoted(type), Quoted("ntk"));
  if (scaling.Has("mixed_b")) return Unsupported(scaling, "mixed_b", "there", "none");
  double factor = 0;
  ATTENDANT_RETURN_IF_ERROR(scaling.Require("factor", factor));
  if (!(factor >= 1)) {
    return Unsupported(scaling, "factor", absl::StrCat(factor), "at least 1");
  }
  rotary.base *= factor;
  rotary.frequency_scale = std::pow(factor, -2 / static_cast<double>(head_dim));
  return absl::OkStatus();
}

absl::Status ReadRotary(const JsonNode& json, EncoderConfig& config) {
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(json.Read("model_type", type));
  if (json.Has("rope_parameters") || (type == kTransformersType && !json.Has("auto_map"))) {
    config.rotary.base = 160000;
    return ReadRopeParameters(json, config);
  }
  ATTENDANT_RETURN_IF_ERROR(json.Read("rope_theta", config.rotary.base));
  if (!json.Has("rope_scaling")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode scaling, json.Field("rope_scaling"));
  return ReadScaling(scaling, config.head_dim(), config.rotary);
}

absl::Status CheckOptions(const JsonNode& json) {
  for (const char* field : {"logn_attention_scale", "logn_attention_clip1"}) {
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, field));
  }
  bool packed = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("pack_qkv", packed));
  if (!packed) return Unsupported(json, "pack_qkv", "false", "true");
  return CheckText(json, "layer_norm_type", "layer_norm");
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckOptions(json));
  int64_t segment_types = 1;
  ATTENDANT_RETURN_IF_ERROR(json.Read("type_vocab_size", segment_types));
  config.segments = segment_types != 0;
  ATTENDANT_ASSIGN_OR_RETURN(
      config.encoder,
      ReadBertFields(json, {.segment_types = config.segments ? "type_vocab_size" : nullptr,
                            .default_segment_types = 1,
                            .position_type = "rope"}));
  ATTENDANT_RETURN_IF_ERROR(ReadRotary(json, config.encoder));
  config.biases.ffn_up = false;
  config.encoder.biases = Biases::kOptional;
  config.encoder.gated_ffn = true;
  config.encoder.positions = Positions::kRotary;
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace gte

constexpr Family kGte{.model_types = gte::kTypes,
                      .code = gte::kCode,
                      .read_config = gte::ReadConfig,
                      .names = {.prefix = "new.",
                                .task_prefix = "gte.",
                                .qkv = "attention.qkv_proj",
                                .attention_output = "attention.o_proj",
                                .attention_norm = "attn_ln",
                                .ffn_up_gate = "mlp.up_gate_proj",
                                .ffn_down = "mlp.down_proj",
                                .ffn_norm = "mlp_ln"}};

}  // namespace attendant
