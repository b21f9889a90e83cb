// SPDX-License-Identifier: Apache-2.0
// Jina v2 for source code, in code of its own that came with the checkpoint: Jina v2 with a norm of
// all heads' queries, one of all heads' keys, and the states added once more behind attention.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/jina_bert.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace jina_qk_norm {
namespace {

constexpr absl::string_view kCode[] = {
    "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, jina_bert::ReadConfig(json));
  config.encoder.query_key_norm = QueryKeyNorm::kWhole;
  config.encoder.second_attention_norm = true;
  return config;
}

}  // namespace
}  // namespace jina_qk_norm

constexpr Family kJinaQkNorm{.code = jina_qk_norm::kCode,
                             .read_config = jina_qk_norm::ReadConfig,
                             .names = {.prefix = "bert.",
                                       .query_norm = "attention.self.layer_norm_q",
                                       .key_norm = "attention.self.layer_norm_k",
                                       .attention_norm = "layer_norm_1",
                                       .attention_output_norm = "attention.output.LayerNorm",
                                       .ffn_up_gate = "mlp.up_gated_layer",
                                       .ffn_down = "mlp.down_layer",
                                       .ffn_norm = "layer_norm_2"}};

}  // namespace attendant
