// SPDX-License-Identifier: Apache-2.0
// Qwen3 as an encoder: Llama's block with norms of queries and keys, and keys that several heads
// share. Perplexity's embedders are the same without a mask.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace qwen3 {
namespace {

constexpr absl::string_view kBidirectional = "bidirectional_pplx_qwen3";
constexpr absl::string_view kTypes[] = {"qwen3", kBidirectional};
constexpr absl::string_view kCode[] = {"modeling.PPLXQwen3Model",
                                       "perplexity-ai/pplx-embed-v1-0.6b--modeling.PPLXQwen3Model",
                                       "perplexity-ai/pplx-embed-v1-4b--modeling.PPLXQwen3Model"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  ATTENDANT_RETURN_IF_ERROR(CheckWholeAttention(json));
  ATTENDANT_ASSIGN_OR_RETURN(const DecoderMask mask, ReadMask(json, kBidirectional));
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, ReadDecoder(json, kDecoderFields, mask));
  config.encoder.query_key_norm = QueryKeyNorm::kHead;
  ATTENDANT_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  return config;
}

constexpr TensorNames Names() {
  TensorNames names = LlamaNames();
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  return names;
}

}  // namespace
}  // namespace qwen3

constexpr Family kQwen3{.model_types = qwen3::kTypes,
                        .code = qwen3::kCode,
                        .read_config = qwen3::ReadConfig,
                        .names = qwen3::Names()};

}  // namespace attendant
