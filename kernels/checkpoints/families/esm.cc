// SPDX-License-Identifier: Apache-2.0
// ESM-2 and ESM-1b, of proteins, and the Nucleotide Transformer: BERT with norms before its
// branches and rotary positions, or learned ones as RoBERTa's.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace esm {
namespace {

constexpr absl::string_view kTypes[] = {"esm"};
constexpr char kRotaryType[] = "rotary", kLearnedType[] = "absolute";
// As today's transformers names them, as it writes them, and as it did when each layer had some.
constexpr absl::string_view kRates[] = {
    "rotary_embeddings.inv_freq", "encoder.layer.*.attention.self.rotary_embeddings.inv_freq",
    "encoder.layer.0.attention.self.rotary_embeddings.inv_freq"};
// Of the tokens that were not masked in training: 12 % were.
constexpr float kKeptInTraining = 0.88f;

absl::Status ReadDropout(const JsonNode& json, EncoderConfig& config) {
  bool drops = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("token_dropout", drops));
  if (!drops) return absl::OkStatus();
  config.embedding_scale = kKeptInTraining;
  ATTENDANT_RETURN_IF_ERROR(json.Require("mask_token_id", config.dropped_token));
  if (config.dropped_token >= 0 && config.dropped_token < config.vocab) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(json.where(), ": `mask_token_id` is ",
                                                 config.dropped_token, ", it must be from 0 to ",
                                                 config.vocab - 1));
}

absl::Status ReadRotary(const JsonNode& json, EncoderConfig& config) {
  for (const char* field : {"rope_scaling", "rope_parameters"}) {
    if (json.Has(field)) return Unsupported(json, field, "there", "none");
  }
  ATTENDANT_RETURN_IF_ERROR(CheckNumber(json, "head_dim", config.head_dim()));
  config.positions = Positions::kRotary;
  return json.Read("rope_theta", config.rotary.base);
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_folding_model"));
  std::string type = kLearnedType;
  ATTENDANT_RETURN_IF_ERROR(json.Read("position_embedding_type", type));
  if (type != kRotaryType && type != kLearnedType) {
    return Unsupported(json, "position_embedding_type", Quoted(type), "absolute, rotary");
  }
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {.activation = nullptr,
                                                                   .default_max_positions = 1026,
                                                                   .segment_types = nullptr,
                                                                   .position_type = type.c_str()}));
  config.encoder.norm_place = NormPlace::kPre;
  config.encoder.final_norm = true;
  config.encoder.embedding_norm = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read("emb_layer_norm_before", config.encoder.embedding_norm));
  ATTENDANT_RETURN_IF_ERROR(ReadDropout(json, config.encoder));
  if (type == kRotaryType) {
    ATTENDANT_RETURN_IF_ERROR(ReadRotary(json, config.encoder));
  } else {
    int64_t padding_id = 0;
    ATTENDANT_RETURN_IF_ERROR(json.Require("pad_token_id", padding_id));
    ATTENDANT_RETURN_IF_ERROR(ReadPositionsBehindPadding(json, config));
  }
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace esm

constexpr Family kEsm{.model_types = esm::kTypes,
                      .read_config = esm::ReadConfig,
                      .names = {.prefix = "esm.",
                                .segment_embedding = "",
                                .embedding_norm = "embeddings.layer_norm",
                                .attention_norm = "attention.LayerNorm",
                                .ffn_norm = "LayerNorm",
                                .final_norm = "encoder.emb_layer_norm_after",
                                .rotary_rates = esm::kRates}};

}  // namespace attendant
