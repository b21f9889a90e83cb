// SPDX-License-Identifier: Apache-2.0
// MPNet: BERT without segments, whose first token has position 2, with a bias of scores by
// distance. Transformers fixes both, and the buckets of distances, whatever its config says.
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace mpnet {
namespace {

constexpr absl::string_view kTypes[] = {"mpnet"};
constexpr int64_t kFirstPosition = 2, kBuckets = 32, kMaxDistance = 128;

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {.segment_types = nullptr}));
  int64_t buckets = kBuckets;
  ATTENDANT_RETURN_IF_ERROR(json.Read("relative_attention_num_buckets", buckets));
  if (buckets != kBuckets) {
    return Unsupported(json, "relative_attention_num_buckets", absl::StrCat(buckets),
                       absl::StrCat(kBuckets));
  }
  if (config.encoder.max_positions <= kFirstPosition) {
    return absl::InvalidArgumentError(absl::StrCat(json.where(), ": `max_position_embeddings` is ",
                                                   config.encoder.max_positions,
                                                   ", it must be above ", kFirstPosition));
  }
  config.first_position = kFirstPosition;
  config.encoder.max_positions -= kFirstPosition;
  config.encoder.score_bias = ScoreBias::kBuckets;
  config.encoder.bias_buckets = kBuckets;
  config.encoder.bias_max_distance = kMaxDistance;
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace mpnet

constexpr Family kMpnet{.model_types = mpnet::kTypes,
                        .read_config = mpnet::ReadConfig,
                        .names = {.prefix = "mpnet.",
                                  .segment_embedding = "",
                                  .query = "attention.attn.q",
                                  .key = "attention.attn.k",
                                  .value = "attention.attn.v",
                                  .attention_output = "attention.attn.o",
                                  .attention_norm = "attention.LayerNorm",
                                  .score_bias = "encoder.relative_attention_bias"}};

}  // namespace attendant
