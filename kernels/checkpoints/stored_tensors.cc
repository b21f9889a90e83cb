// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/stored_tensors.h"

namespace attendant {

absl::Status StoredTensors::LoadLinear(const std::string& name, Parts parts, int64_t outputs,
                                       int64_t inputs, bool has_bias) {
  const int64_t rows = static_cast<int64_t>(parts.size()) * outputs;
  TensorView<const float, 2> weight;
  TensorView<const float, 1> bias;
  ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>(name + ".weight", {rows, inputs}, weight));
  ATTENDANT_RETURN_IF_ERROR(LoadBias(name + ".bias", rows, has_bias, bias));
  int64_t row = 0;
  for (LinearWeights* part : parts) {
    part->weight = {weight.row(row), {outputs, inputs}};
    if (has_bias) part->bias = {bias.row(row), {outputs}};
    row += outputs;
  }
  return absl::OkStatus();
}

absl::Status StoredTensors::LoadNorm(const std::string& name, int64_t size,
                                     LayerNormWeights& norm) {
  const NormSuffixes suffixes = FindNormSuffixes(store_, prefix_ + name);
  ATTENDANT_RETURN_IF_ERROR(LoadTensor<1>(absl::StrCat(name, suffixes.gamma), {size}, norm.gamma));
  if (family_.norm_offset != 0) {
    float* made = MakeTensor(size);
    for (int64_t i = 0; i < size; ++i) {
      made[i] = norm.gamma.data()[i] + family_.norm_offset;
    }
    norm.gamma = {made, {size}};
  }
  return LoadBias(absl::StrCat(name, suffixes.beta), size, family_.biases.norms, norm.beta);
}

absl::Status StoredTensors::LoadBias(const std::string& name, int64_t size, bool has_bias,
                                     TensorView<const float, 1>& to) {
  if (has_bias) return LoadTensor<1>(name, {size}, to);
  if (!Has(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor `", prefix_, name, "` is there, the config says that it is not"));
}

}  // namespace attendant
