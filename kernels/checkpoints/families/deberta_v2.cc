// SPDX-License-Identifier: Apache-2.0
// DeBERTa v2 and v3: BERT with disentangled attention, whose terms of distance go through the
// layer's own query and key. Other forms of it, and the convolution of v2's largest models, are
// refused.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace deberta_v2 {
namespace {

constexpr absl::string_view kTypes[] = {"deberta-v2"};
// A score is the sum of so many dot products: of content, and of content and distance twice.
constexpr float kTerms = 3;

// The options of a field: a list, or a text "a|b".
absl::StatusOr<std::vector<std::string>> ReadOptions(const JsonNode& json, const char* field) {
  std::vector<std::string> options;
  if (!json.Has(field)) return options;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode node, json.Field(field));
  if (node.IsArray()) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, node.Elements());
    for (const JsonNode& element : elements) {
      ATTENDANT_RETURN_IF_ERROR(element.Get(options.emplace_back()));
    }
    return options;
  }
  std::string text;
  ATTENDANT_RETURN_IF_ERROR(node.Get(text));
  for (absl::string_view part : absl::StrSplit(absl::AsciiStrToLower(text), '|')) {
    options.emplace_back(absl::StripAsciiWhitespace(part));
  }
  return options;
}

absl::Status CheckTrue(const JsonNode& json, const char* field) {
  bool value = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  return value ? absl::OkStatus() : Unsupported(json, field, "false", "true");
}

absl::Status CheckAttention(const JsonNode& json, const EncoderConfig& config) {
  for (const char* field : {"relative_attention", "share_att_key"}) {
    ATTENDANT_RETURN_IF_ERROR(CheckTrue(json, field));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> terms,
                             ReadOptions(json, "pos_att_type"));
  const bool both = terms == std::vector<std::string>{"c2p", "p2c"} ||
                    terms == std::vector<std::string>{"p2c", "c2p"};
  if (!both) {
    return Unsupported(json, "pos_att_type", Quoted(absl::StrJoin(terms, "|")), Quoted("p2c|c2p"));
  }
  int64_t convolution = 0, head_size = config.head_dim();
  ATTENDANT_RETURN_IF_ERROR(json.Read("conv_kernel_size", convolution));
  if (convolution > 0) {
    return Unsupported(json, "conv_kernel_size", absl::StrCat(convolution), "0");
  }
  ATTENDANT_RETURN_IF_ERROR(json.Read("attention_head_size", head_size));
  if (head_size == config.head_dim()) return absl::OkStatus();
  return Unsupported(json, "attention_head_size", absl::StrCat(head_size),
                     absl::StrCat(config.head_dim()));
}

absl::Status ReadBuckets(const JsonNode& json, EncoderConfig& config) {
  int64_t buckets = -1;  // of distances to one side
  ATTENDANT_RETURN_IF_ERROR(json.Read("position_buckets", buckets));
  if (buckets < 1 || buckets > kMaxRows / 2) {
    return Unsupported(json, "position_buckets", absl::StrCat(buckets), "from 1 to 2^27");
  }
  if (buckets % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(json.where(), ": `position_buckets` is ",
                                                   buckets, ", it must be a multiple of 2"));
  }
  int64_t distance = -1;
  ATTENDANT_RETURN_IF_ERROR(json.Read("max_relative_positions", distance));
  config.score_bias = ScoreBias::kDisentangled;
  config.bias_buckets = 2 * buckets;
  config.bias_max_distance = distance < 1 ? config.max_positions : distance;
  // Up to half of the buckets each distance has its own: texts that end before it have no others.
  const int64_t exact = buckets / 2;
  if (config.max_positions <= exact + 1) {
    config.bias_max_distance = std::max(config.bias_max_distance, exact + 2);
  } else if (config.bias_max_distance < exact + 2) {
    return absl::InvalidArgumentError(absl::StrCat(json.where(), ": `max_relative_positions` is ",
                                                   distance, ", it must be at least ", exact + 2,
                                                   " where `position_buckets` is ", buckets));
  }
  config.query_scale = 1 / std::sqrt(static_cast<float>(config.head_dim()) * kTerms);
  return absl::OkStatus();
}

absl::Status ReadScoreBiasNorm(const JsonNode& json, bool& norm) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> norms,
                             ReadOptions(json, "norm_rel_ebd"));
  for (const std::string& option : norms) {
    if (option != "none" && option != "layer_norm") {
      return Unsupported(json, "norm_rel_ebd", Quoted(option), "none or layer_norm");
    }
    norm |= option == "layer_norm";
  }
  return absl::OkStatus();
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  int64_t segment_types = 0;
  ATTENDANT_RETURN_IF_ERROR(json.Read("type_vocab_size", segment_types));
  config.segments = segment_types != 0;
  const char* const segments = config.segments ? "type_vocab_size" : nullptr;
  ATTENDANT_ASSIGN_OR_RETURN(
      config.encoder, ReadBertFields(json, {.segment_types = segments, .default_epsilon = 1e-7}));
  ATTENDANT_RETURN_IF_ERROR(CheckAttention(json, config.encoder));
  bool absolute = true;
  ATTENDANT_RETURN_IF_ERROR(json.Read("position_biased_input", absolute));
  config.encoder.positions = absolute ? Positions::kLearned : Positions::kNone;
  ATTENDANT_RETURN_IF_ERROR(ReadBuckets(json, config.encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadScoreBiasNorm(json, config.score_bias_norm));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace deberta_v2

constexpr Family kDebertaV2{.model_types = deberta_v2::kTypes,
                            .read_config = deberta_v2::ReadConfig,
                            .names = {.prefix = "deberta.",
                                      .query = "attention.self.query_proj",
                                      .key = "attention.self.key_proj",
                                      .value = "attention.self.value_proj",
                                      .score_bias = "encoder.rel_embeddings",
                                      .score_bias_norm = "encoder.LayerNorm"}};

}  // namespace attendant
