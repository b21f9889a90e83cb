// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/attention_module.h"

#include <array>
#include <initializer_list>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/tensor_shape.h"

namespace attendant {
namespace {

constexpr int64_t kMaxLayers = 1 << 12;
constexpr int64_t kMaxWidth = 1 << 20;

struct Bound {
  const char* field;
  int64_t value;
  int64_t limit;
};

absl::Status CheckBounds(std::initializer_list<Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (bound.value >= 1 && bound.value <= bound.limit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(bound.field, " is ", bound.value, ", it must be from 1 to ", bound.limit));
  }
  return absl::OkStatus();
}

absl::Status CheckWeightSize(const char* name, int64_t rows, int64_t columns) {
  if (rows * columns <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " has ", rows, " x ", columns,
                                                 " values, the limit of one tensor is 2147483647"));
}

absl::Status ValidateEncoder(const ModuleConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckBounds({{"layers", config.layers, kMaxLayers}, {"ffn", config.ffn, kMaxWidth}}));
  if (config.key_dim != config.hidden || config.value_dim != config.hidden) {
    return absl::InvalidArgumentError(
        absl::StrCat("an encoder of hidden ", config.hidden, " has key_dim ", config.key_dim,
                     " and value_dim ", config.value_dim, ": all three must be equal"));
  }
  if (!(config.layer_norm_epsilon > 0 && config.layer_norm_epsilon < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer_norm_epsilon is ", config.layer_norm_epsilon, ", it must be between 0 and 1"));
  }
  return CheckWeightSize("ffn_up", config.ffn, config.hidden);
}

// Collects the first mismatch of a walk over all tensors.
class ShapeChecker {
 public:
  void Check(const std::string& name, const LinearWeights& linear, int64_t outputs,
             int64_t inputs) {
    CheckTensor<2>(name + ".weight", linear.weight, {outputs, inputs});
    CheckOptional(name + ".bias", linear.bias, outputs);
  }
  void Check(const std::string& name, const LayerNormWeights& norm, int64_t hidden) {
    CheckTensor<1>(name + ".gamma", norm.gamma, {hidden});
    CheckOptional(name + ".beta", norm.beta, hidden);
  }
  void Check(const std::string& name, const MultiHeadWeights& weights, const ModuleConfig& config) {
    Check(name + "query", weights.query, config.hidden, config.hidden);
    Check(name + "key", weights.key, config.hidden, config.key_dim);
    Check(name + "value", weights.value, config.hidden, config.value_dim);
    Check(name + "output", weights.output, config.hidden, config.hidden);
  }
  const absl::Status& status() const { return status_; }

 private:
  template <int rank>
  void CheckTensor(const std::string& name, const TensorView<const float, rank>& tensor,
                   const std::array<int64_t, rank>& expected) {
    if (status_.ok()) status_ = CheckTensorShape<rank>(name, tensor, expected);
  }
  void CheckOptional(const std::string& name, const TensorView<const float, 1>& tensor,
                     int64_t expected) {
    if (!tensor.empty()) CheckTensor<1>(name, tensor, {expected});
  }

  absl::Status status_;
};

}  // namespace

absl::Status Validate(const ModuleConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"heads", config.heads, kMaxWidth},
                                         {"hidden", config.hidden, kMaxWidth},
                                         {"key_dim", config.key_dim, kMaxWidth},
                                         {"value_dim", config.value_dim, kMaxWidth}}));
  if (config.hidden % config.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hidden is ", config.hidden, ", it must be a multiple of heads, ", config.heads));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("query", config.hidden, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("key", config.hidden, config.key_dim));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("value", config.hidden, config.value_dim));
  return config.type == ModuleType::kTransformerEncoder ? ValidateEncoder(config)
                                                        : absl::OkStatus();
}

absl::Status ValidateWeights(const ModuleConfig& config, const ModuleWeights& weights) {
  ATTENDANT_RETURN_IF_ERROR(Validate(config));
  ShapeChecker checker;
  if (config.type == ModuleType::kMultiHead) {
    checker.Check("", weights.attention, config);
    return checker.status();
  }
  if (static_cast<int64_t>(weights.layers.size()) != config.layers) {
    return absl::InvalidArgumentError(absl::StrCat("there are weights of ", weights.layers.size(),
                                                   " layers, the configuration asks for ",
                                                   config.layers));
  }
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const TransformerLayerWeights& layer = weights.layers[i];
    const std::string name = absl::StrCat("layer ", i, ".");
    checker.Check(name, layer.attention, config);
    checker.Check(name + "attention_norm", layer.attention_norm, config.hidden);
    checker.Check(name + "ffn_up", layer.ffn_up, config.ffn, config.hidden);
    checker.Check(name + "ffn_down", layer.ffn_down, config.hidden, config.ffn);
    checker.Check(name + "ffn_norm", layer.ffn_norm, config.hidden);
  }
  if (config.final_norm) checker.Check("final_norm", weights.final_norm, config.hidden);
  return checker.status();
}

}  // namespace attendant
