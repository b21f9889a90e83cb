// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace distilbert {
namespace {

constexpr absl::string_view kTypes[] = {"distilbert"};

// Without segments; the epsilon of its norms is fixed, at BERT's 1e-12.
absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  constexpr BertFields kFields{.layers = "n_layers",
                               .heads = "n_heads",
                               .hidden = "dim",
                               .ffn = "hidden_dim",
                               .activation = "activation",
                               .segment_types = nullptr,
                               .epsilon = nullptr};
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  return config;
}

}  // namespace
}  // namespace distilbert

constexpr Family kDistilBert{.model_types = distilbert::kTypes,
                             .read_config = distilbert::ReadConfig,
                             .names = {.prefix = "distilbert.",
                                       .segment_embedding = "",
                                       .layers = "transformer.layer",
                                       .query = "attention.q_lin",
                                       .key = "attention.k_lin",
                                       .value = "attention.v_lin",
                                       .attention_output = "attention.out_lin",
                                       .attention_norm = "sa_layer_norm",
                                       .ffn_up = "ffn.lin1",
                                       .ffn_down = "ffn.lin2",
                                       .ffn_norm = "output_layer_norm"}};

}  // namespace attendant
