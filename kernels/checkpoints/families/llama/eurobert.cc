// SPDX-License-Identifier: Apache-2.0
// EuroBERT: Llama's block without its mask: pre-norm, RMS norms, rotary positions, gated ffn, keys
// that several heads share.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace eurobert {
namespace {

constexpr absl::string_view kTypes[] = {"eurobert"};
constexpr absl::string_view kCode[] = {"modeling_eurobert.EuroBertModel",
                                       "EuroBERT/EuroBERT-210m--modeling_eurobert.EuroBertModel",
                                       "EuroBERT/EuroBERT-610m--modeling_eurobert.EuroBertModel",
                                       "EuroBERT/EuroBERT-2.1B--modeling_eurobert.EuroBertModel"};

constexpr BertFields Fields() {
  BertFields fields = OptionalHeadDim();
  fields.optional_shared_keys = true;
  fields.reads_causal = false;
  fields.default_epsilon = 1e-5;
  return fields;
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  constexpr BertFields kFields = Fields();
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, ReadDecoder(json, kFields, DecoderMask::kNone));
  ATTENDANT_RETURN_IF_ERROR(ReadLlamaBiases(json, config));
  return config;
}

}  // namespace
}  // namespace eurobert

constexpr Family kEuroBert{.model_types = eurobert::kTypes,
                           .code = eurobert::kCode,
                           .read_config = eurobert::ReadConfig,
                           .names = LlamaNames()};

}  // namespace attendant
