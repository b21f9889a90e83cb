// SPDX-License-Identifier: Apache-2.0
// EuroBERT: Llama's block without its mask: pre-norm, RMS norms, rotary positions, gated ffn, keys
// that several heads share.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
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
constexpr BertFields kFields{.segment_types = nullptr,
                             .head_dim = "head_dim",
                             .shared_keys = true,
                             .epsilon = "rms_norm_eps",
                             .default_epsilon = 1e-5,
                             .default_activation = "silu"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  EncoderConfig& encoder = config.encoder;
  SetLlamaBlock(encoder);
  encoder.norm_place = NormPlace::kPre;
  ATTENDANT_RETURN_IF_ERROR(ReadLlamaRotary(json, encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadLlamaBiases(json, config));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  return config;
}

}  // namespace
}  // namespace eurobert

constexpr Family kEuroBert{.model_types = eurobert::kTypes,
                           .code = eurobert::kCode,
                           .read_config = eurobert::ReadConfig,
                           .names = LlamaNames()};

}  // namespace attendant
