// SPDX-License-Identifier: Apache-2.0
// Jina v2, a BERT by its `model_type`: ALiBi and a gated ffn, in code that came with the
// checkpoint. Its variant with norms of queries and keys is code of another name (jina_qk_norm.cc).
#include "kernels/checkpoints/families/jina_bert.h"

#include <string>

#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace jina_bert {
namespace {

constexpr absl::string_view kCode[] = {
    "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel", "modeling_bert.JinaBertModel"};

// The activation is the ffn's own, `hidden_act` is not read.
absl::Status ReadFfn(const JsonNode& json, EncoderConfig& config) {
  std::string type = "original";
  ATTENDANT_RETURN_IF_ERROR(json.Read("feed_forward_type", type));
  if (type != "geglu" && type != "reglu") {
    return Unsupported(json, "feed_forward_type", Quoted(type), "geglu or reglu");
  }
  config.activation = type == "geglu" ? Activation::kGeluErf : Activation::kRelu;
  config.gated_ffn = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  std::string positions;  // checked by ReadBertFields; the code's default is another
  ATTENDANT_RETURN_IF_ERROR(json.Require("position_embedding_type", positions));
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {.position_type = "alibi"}));
  ATTENDANT_RETURN_IF_ERROR(ReadFfn(json, config.encoder));
  config.biases.ffn_up = false;
  config.encoder.biases = Biases::kOptional;
  config.encoder.positions = Positions::kNone;
  config.encoder.score_bias = ScoreBias::kAlibi;
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace jina_bert

constexpr Family kJinaBert{.code = jina_bert::kCode,
                           .read_config = jina_bert::ReadConfig,
                           .names = {.prefix = "bert.",
                                     .ffn_gate_up = "mlp.gated_layers",
                                     .ffn_down = "mlp.wo",
                                     .ffn_norm = "mlp.layernorm"}};

}  // namespace attendant
