// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_config.h"

#include <initializer_list>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

struct Bound {
  const char* field;
  int64_t value;
  int64_t limit;
};

// Far above any encoder there is, and low enough that products of two stay below 2^62.
constexpr int64_t kMaxLayers = 1 << 12;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxRows = 1 << 28;

absl::Status CheckWeightSize(const char* name, int64_t rows, int64_t columns) {
  if (rows * columns <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " has ", rows, " x ", columns,
                                                 " values, the limit of one tensor is 2147483647"));
}

}  // namespace

absl::Status Validate(const EncoderConfig& config) {
  for (const Bound& bound : std::initializer_list<Bound>{
           {"layers", config.layers, kMaxLayers},
           {"heads", config.heads, kMaxWidth},
           {"hidden", config.hidden, kMaxWidth},
           {"ffn", config.ffn, kMaxWidth},
           {"vocab", config.vocab, kMaxRows},
           {"max_positions", config.max_positions, kMaxRows},
           {"segment_types", config.segment_types, kMaxRows},
       }) {
    if (bound.value < 1 || bound.value > bound.limit) {
      return absl::InvalidArgumentError(
          absl::StrCat(bound.field, " is ", bound.value, ", it must be from 1 to ", bound.limit));
    }
  }
  if (config.hidden % config.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hidden is ", config.hidden, ", it must be a multiple of heads, ", config.heads));
  }
  if (!(config.layer_norm_epsilon > 0 && config.layer_norm_epsilon < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer_norm_epsilon is ", config.layer_norm_epsilon, ", it must be between 0 and 1"));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("token_embedding", config.vocab, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(
      CheckWeightSize("position_embedding", config.max_positions, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(
      CheckWeightSize("segment_embedding", config.segment_types, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("fused qkv weight", 3 * config.hidden, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("ffn_up", config.ffn, config.hidden));
  return absl::OkStatus();
}

}  // namespace attendant
