// SPDX-License-Identifier: Apache-2.0
// Jina v3, as transformers has it and as the code of the first checkpoints has it: BERT with rotary
// positions. That code keeps task adapters beside the weights (adapters.h).
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace jina_v3 {
namespace {

constexpr absl::string_view kTypes[] = {"jina_embeddings_v3"};
constexpr absl::string_view kCode[] = {
    "jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA",
    "jinaai/xlm-roberta-flash-implementation--modeling_xlm_roberta.XLMRobertaModel",
    "modeling_lora.XLMRobertaLoRA", "modeling_xlm_roberta.XLMRobertaModel"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {.default_segment_types = 1,
                                                                   .position_type = "rotary",
                                                                   .default_epsilon = 1e-5}));
  config.encoder.positions = Positions::kRotary;
  const bool has_code = json.Has("auto_map");
  config.encoder.rotary.base = has_code ? 10000 : 20000;  // the defaults of both
  if (has_code) {
    ATTENDANT_RETURN_IF_ERROR(json.Read("rotary_emb_base", config.encoder.rotary.base));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadRopeParameters(json, config.encoder));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace jina_v3

constexpr Family kJinaV3{.model_types = jina_v3::kTypes,
                         .code = jina_v3::kCode,
                         .read_config = jina_v3::ReadConfig,
                         .names = {.prefix = "roberta.",
                                   .embedding_norm = "emb_ln",
                                   .layers = "encoder.layers",
                                   .qkv = "mixer.Wqkv",
                                   .attention_output = "mixer.out_proj",
                                   .attention_norm = "norm1",
                                   .ffn_up = "mlp.fc1",
                                   .ffn_down = "mlp.fc2",
                                   .ffn_norm = "norm2"}};

}  // namespace attendant
