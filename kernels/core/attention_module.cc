// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/attention_module.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"

namespace attendant {
namespace {

absl::Status ValidateEncoder(const ModuleConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckBounds({{"layers", config.layers, kMaxLayers}, {"ffn", config.ffn, kMaxWidth}}));
  if (config.key_dim != config.hidden || config.value_dim != config.hidden) {
    return absl::InvalidArgumentError(
        absl::StrCat("an encoder of hidden ", config.hidden, " has key_dim ", config.key_dim,
                     " and value_dim ", config.value_dim, ": all three must be equal"));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckEpsilon(config.layer_norm_epsilon));
  return CheckWeightSize("ffn_up", config.ffn, config.hidden);
}

void CheckMultiHead(const std::string& name, const MultiHeadWeights& weights,
                    const ModuleConfig& config, ShapeChecker& checker) {
  checker.Check(name + "query", weights.query, config.hidden, config.hidden);
  checker.Check(name + "key", weights.key, config.hidden, config.key_dim);
  checker.Check(name + "value", weights.value, config.hidden, config.value_dim);
  checker.Check(name + "output", weights.output, config.hidden, config.hidden);
}

}  // namespace

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
  ShapeChecker checker(ShapeChecker::Biases::kOptional);
  if (config.type == ModuleType::kMultiHead) {
    CheckMultiHead("", weights.attention, config, checker);
    return checker.status();
  }
  ATTENDANT_RETURN_IF_ERROR(CheckLayerCount(weights.layers.size(), config.layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const TransformerLayerWeights& layer = weights.layers[i];
    const std::string name = absl::StrCat("layer ", i, ".");
    CheckMultiHead(name, layer.attention, config, checker);
    checker.Check(name + "attention_norm", layer.attention_norm, config.hidden);
    checker.Check(name + "ffn_up", layer.ffn_up, config.ffn, config.hidden);
    checker.Check(name + "ffn_down", layer.ffn_down, config.hidden, config.ffn);
    checker.Check(name + "ffn_norm", layer.ffn_norm, config.hidden);
  }
  if (config.final_norm) checker.Check("final_norm", weights.final_norm, config.hidden);
  return checker.status();
}

}  // namespace attendant
