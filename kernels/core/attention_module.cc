// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/attention_module.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"

namespace attendant {
namespace {

absl::Status ValidateEncoder(const ModuleConfig& config) {
  if (config.key_dim != config.hidden || config.value_dim != config.hidden) {
    return absl::InvalidArgumentError(
        absl::StrCat("an encoder of hidden ", config.hidden, " has key_dim ", config.key_dim,
                     " and value_dim ", config.value_dim, ": all three must be equal"));
  }
  return Validate(EncoderOf(config));
}

}  // namespace

EncoderConfig EncoderOf(const ModuleConfig& config) {
  return {.layers = config.layers,
          .heads = config.heads,
          .hidden = config.hidden,
          .ffn = config.ffn,
          .layer_norm_epsilon = config.layer_norm_epsilon,
          .activation = config.activation,
          .input = EncoderInput::kStates,
          .norm_place = config.norm_first ? NormPlace::kPre : NormPlace::kPost,
          .final_norm = config.final_norm,
          .final_norm_epsilon = config.final_norm_epsilon,
          .biases = Biases::kOptional};
}

absl::Status Validate(const ModuleConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"heads", config.heads, kMaxWidth},
                                         {"hidden", config.hidden, kMaxWidth},
                                         {"key_dim", config.key_dim, kMaxWidth},
                                         {"value_dim", config.value_dim, kMaxWidth}}));
  ATTENDANT_RETURN_IF_ERROR(CheckHeadsDivide(config.hidden, config.heads));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("query", config.hidden, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("key", config.hidden, config.key_dim));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("value", config.hidden, config.value_dim));
  return config.type == ModuleType::kTransformerEncoder ? ValidateEncoder(config)
                                                        : absl::OkStatus();
}

absl::Status ValidateWeights(const ModuleConfig& config, const ModuleWeights& weights) {
  ATTENDANT_RETURN_IF_ERROR(Validate(config));
  if (config.type == ModuleType::kTransformerEncoder) {
    return ValidateWeights(EncoderOf(config), weights);
  }
  ShapeChecker checker(Biases::kOptional);
  checker.Check("", weights.attention, config.hidden, config.key_dim, config.value_dim);
  return checker.status();
}

}  // namespace attendant
