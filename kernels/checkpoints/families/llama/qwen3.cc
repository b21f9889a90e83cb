// SPDX-License-Identifier: Apache-2.0
// Qwen3 as an encoder: Llama's block with norms of queries and keys, and keys that several heads
// share.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace qwen3 {
namespace {

constexpr absl::string_view kTypes[] = {"qwen3"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  ATTENDANT_RETURN_IF_ERROR(CheckWholeAttention(json));
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, ReadDecoder(json, kDecoderFields));
  config.encoder.query_key_norm = true;
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

constexpr Family kQwen3{
    .model_types = qwen3::kTypes, .read_config = qwen3::ReadConfig, .names = qwen3::Names()};

}  // namespace attendant
