// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_config.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"

namespace attendant {
namespace {

absl::Status ValidateEmbeddings(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"vocab", config.vocab, kMaxRows},
                                         {"max_positions", config.max_positions, kMaxRows},
                                         {"segment_types", config.segment_types, kMaxRows}}));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("token_embedding", config.vocab, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(
      CheckWeightSize("position_embedding", config.max_positions, config.hidden));
  return CheckWeightSize("segment_embedding", config.segment_types, config.hidden);
}

}  // namespace

absl::Status Validate(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"layers", config.layers, kMaxLayers},
                                         {"heads", config.heads, kMaxWidth},
                                         {"hidden", config.hidden, kMaxWidth},
                                         {"ffn", config.ffn, kMaxWidth}}));
  ATTENDANT_RETURN_IF_ERROR(CheckHeadsDivide(config.hidden, config.heads));
  ATTENDANT_RETURN_IF_ERROR(CheckEpsilon(config.layer_norm_epsilon));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("fused qkv weight", 3 * config.hidden, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("ffn_up", config.ffn, config.hidden));
  return config.input == EncoderInput::kTokens ? ValidateEmbeddings(config) : absl::OkStatus();
}

absl::Status CheckComputed(absl::string_view backend, const EncoderConfig& computed,
                           const EncoderConfig& config) {
  const char* other = computed == config ? nullptr : "dimensions";
  for (const auto& [name, same] : std::initializer_list<std::pair<const char*, bool>>{
           {"activation", computed.activation == config.activation},
           {"input", computed.input == config.input},
           {"norm_place", computed.norm_place == config.norm_place},
           {"final_norm", computed.final_norm == config.final_norm},
           {"biases", computed.biases == config.biases}}) {
    if (!same) other = name;
  }
  if (other == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("the ", backend, " back end does not compute an encoder with this ", other));
}

}  // namespace attendant
