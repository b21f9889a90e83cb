// SPDX-License-Identifier: Apache-2.0
// ALBERT: BERT with narrow embeddings and a projection, whose layers share the weights of one group
// or a few.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace albert {
namespace {

constexpr absl::string_view kTypes[] = {"albert"};

absl::Status ReadGroups(const JsonNode& json, int64_t layers, int64_t& groups) {
  int64_t inner = 1;
  ATTENDANT_RETURN_IF_ERROR(json.Read("inner_group_num", inner));
  if (inner != 1) return Unsupported(json, "inner_group_num", absl::StrCat(inner), "1");
  groups = 1;
  ATTENDANT_RETURN_IF_ERROR(json.Read("num_hidden_groups", groups));
  if (groups >= 1 && groups <= layers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(json.where(), ": num_hidden_groups is ", groups,
                                                 ", it must be from 1 to ", layers));
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(
      config.encoder,
      ReadBertFields(json, {.default_embedding_width = 128, .default_activation = "gelu_new"}));
  ATTENDANT_RETURN_IF_ERROR(ReadGroups(json, config.encoder.layers, config.layer_groups));
  return config;
}

}  // namespace
}  // namespace albert

constexpr Family kAlbert{.model_types = albert::kTypes,
                         .read_config = albert::ReadConfig,
                         .names = {.prefix = "albert.",
                                   .embedding_projection = "encoder.embedding_hidden_mapping_in",
                                   .layers = "encoder.albert_layer_groups",
                                   .query = "albert_layers.0.attention.query",
                                   .key = "albert_layers.0.attention.key",
                                   .value = "albert_layers.0.attention.value",
                                   .attention_output = "albert_layers.0.attention.dense",
                                   .attention_norm = "albert_layers.0.attention.LayerNorm",
                                   .ffn_up = "albert_layers.0.ffn",
                                   .ffn_down = "albert_layers.0.ffn_output",
                                   .ffn_norm = "albert_layers.0.full_layer_layer_norm"}};

}  // namespace attendant
