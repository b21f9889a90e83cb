// SPDX-License-Identifier: Apache-2.0
// Qwen2 as an encoder: Llama's block with biases of queries, keys and values, and keys that several
// heads share.
#include <string>

#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace qwen2 {
namespace {

constexpr absl::string_view kTypes[] = {"qwen2"};
// Of the GTE models and Stella: with `is_causal`, which transformers' own class reads too.
constexpr absl::string_view kCode[] = {
    "modeling_qwen.Qwen2Model", "Alibaba-NLP/gte-Qwen2-1.5B-instruct--modeling_qwen.Qwen2Model",
    "Alibaba-NLP/gte-Qwen2-7B-instruct--modeling_qwen.Qwen2Model"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  ATTENDANT_RETURN_IF_ERROR(CheckWholeAttention(json));
  // The default of an absent is_causal depends on the revision of the code, so it must be given.
  ATTENDANT_ASSIGN_OR_RETURN(const std::string code, ReadCode(json));
  if (!code.empty()) ATTENDANT_RETURN_IF_ERROR(json.Field("is_causal").status());
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, ReadDecoder(json, OptionalHeadDim()));
  config.biases.qkv = true;
  return config;
}

}  // namespace
}  // namespace qwen2

constexpr Family kQwen2{.model_types = qwen2::kTypes,
                        .code = qwen2::kCode,
                        .read_config = qwen2::ReadConfig,
                        .names = LlamaNames()};

}  // namespace attendant
