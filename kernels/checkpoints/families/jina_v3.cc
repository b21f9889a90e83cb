// SPDX-License-Identifier: Apache-2.0
// Jina v3 as transformers has it: BERT with rotary positions. Checkpoints with code of their own
// keep task adapters beside the weights, and are refused by that code's name.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace {

constexpr absl::string_view kTypes[] = {"jina_embeddings_v3"};
constexpr double kDefaultBase = 20000;

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(
      config.encoder, ReadBertFields(json, {.default_segment_types = 1, .default_epsilon = 1e-5}));
  config.encoder.positions = Positions::kRotary;
  config.encoder.rotary.base = kDefaultBase;
  if (json.Has("rope_parameters")) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode parameters, json.Field("rope_parameters"));
    ATTENDANT_RETURN_IF_ERROR(ReadRopeParameters(parameters, kDefaultBase, config.encoder.rotary));
  }
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace

constexpr Family kJinaV3{.model_types = kTypes,
                         .read_config = ReadConfig,
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
