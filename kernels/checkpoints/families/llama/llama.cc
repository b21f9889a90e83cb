// SPDX-License-Identifier: Apache-2.0
// Llama as an encoder, with its mask or without: `llama_bidirec`, NVIDIA's own model type.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace llama {
namespace {

constexpr absl::string_view kBidirectional = "llama_bidirec";
constexpr absl::string_view kTypes[] = {"llama", kBidirectional};
constexpr absl::string_view kCode[] = {
    "llama_bidirectional_model.LlamaBidirectionalModel",
    "nvidia/llama-nemotron-embed-1b-v2--llama_bidirectional_model.LlamaBidirectionalModel"};

constexpr BertFields Fields() {
  BertFields fields = OptionalHeadDim();
  fields.optional_shared_keys = true;
  return fields;
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  constexpr BertFields kFields = Fields();
  ATTENDANT_ASSIGN_OR_RETURN(const DecoderMask mask, ReadMask(json, kBidirectional));
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, ReadDecoder(json, kFields, mask));
  ATTENDANT_RETURN_IF_ERROR(ReadLlamaBiases(json, config));
  return config;
}

}  // namespace
}  // namespace llama

constexpr Family kLlama{.model_types = llama::kTypes,
                        .code = llama::kCode,
                        .read_config = llama::ReadConfig,
                        .names = LlamaNames()};

}  // namespace attendant
