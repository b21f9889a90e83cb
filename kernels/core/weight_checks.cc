// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/weight_checks.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant {

absl::Status CheckBounds(std::initializer_list<DimBound> bounds) {
  for (const DimBound& bound : bounds) {
    if (bound.value >= 1 && bound.value <= bound.limit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(bound.field, " is ", bound.value, ", it must be from 1 to ", bound.limit));
  }
  return absl::OkStatus();
}

absl::Status CheckHeadsDivide(int64_t hidden, int64_t heads) {
  if (hidden % heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("hidden is ", hidden, ", it must be a multiple of heads, ", heads));
}

absl::Status CheckEpsilon(float layer_norm_epsilon) {
  if (layer_norm_epsilon > 0 && layer_norm_epsilon < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("layer_norm_epsilon is ", layer_norm_epsilon, ", it must be between 0 and 1"));
}

absl::Status CheckLayerCount(size_t weights, int64_t layers) {
  if (static_cast<int64_t>(weights) == layers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there are weights of ", weights,
                                                 " layers, the configuration asks for ", layers));
}

absl::Status CheckWeightSize(const char* name, int64_t rows, int64_t columns) {
  if (rows * columns <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " has ", rows, " x ", columns,
                                                 " values, the limit of one tensor is 2147483647"));
}

void ShapeChecker::Check(const std::string& name, const LinearWeights& linear, int64_t outputs,
                         int64_t inputs) {
  Check<2>(name + ".weight", linear.weight, {outputs, inputs});
  CheckBias(name + ".bias", linear.bias, outputs);
}

void ShapeChecker::Check(const std::string& name, const LayerNormWeights& norm, int64_t hidden) {
  Check<1>(name + ".gamma", norm.gamma, {hidden});
  CheckBias(name + ".beta", norm.beta, hidden);
}

void ShapeChecker::Check(const std::string& prefix, const MultiHeadWeights& weights, int64_t hidden,
                         int64_t key_dim, int64_t value_dim) {
  Check(prefix + "query", weights.query, hidden, hidden);
  Check(prefix + "key", weights.key, hidden, key_dim);
  Check(prefix + "value", weights.value, hidden, value_dim);
  Check(prefix + "attention_output", weights.attention_output, hidden, hidden);
}

void ShapeChecker::CheckBias(const std::string& name, const TensorView<const float, 1>& bias,
                             int64_t size) {
  if (biases_ == Biases::kRequired || !bias.empty()) Check<1>(name, bias, {size});
}

void ShapeChecker::Refuse(const std::string& name, bool missing, std::span<const int64_t> dims,
                          std::span<const int64_t> expected) {
  status_.Update(absl::InvalidArgumentError(
      missing
          ? absl::StrCat("tensor ", name, " is missing")
          : absl::StrCat("tensor ", name, " has shape [", absl::StrJoin(dims, ", "),
                         "], the configuration asks for [", absl::StrJoin(expected, ", "), "]")));
}

}  // namespace attendant
