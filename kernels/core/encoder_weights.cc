// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_weights.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/tensor_shape.h"

namespace attendant {
namespace {

// Collects the first mismatch of a walk over all tensors.
class ShapeChecker {
 public:
  template <size_t rank>
  void Check(const std::string& name, const TensorView<const float, static_cast<int>(rank)>& tensor,
             const std::array<int64_t, rank>& expected) {
    if (status_.ok()) status_ = CheckTensorShape<rank>(name, tensor, expected);
  }
  void Check(const std::string& name, const LinearWeights& linear, int64_t outputs,
             int64_t inputs) {
    Check<2>(name + ".weight", linear.weight, {outputs, inputs});
    Check<1>(name + ".bias", linear.bias, {outputs});
  }
  void Check(const std::string& name, const LayerNormWeights& norm, int64_t hidden) {
    Check<1>(name + ".gamma", norm.gamma, {hidden});
    Check<1>(name + ".beta", norm.beta, {hidden});
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

void CheckLayer(const EncoderConfig& config, const EncoderLayerWeights& layer,
                const std::string& name, ShapeChecker& checker) {
  checker.Check(name + ".query", layer.query, config.hidden, config.hidden);
  checker.Check(name + ".key", layer.key, config.hidden, config.hidden);
  checker.Check(name + ".value", layer.value, config.hidden, config.hidden);
  checker.Check(name + ".attention_output", layer.attention_output, config.hidden, config.hidden);
  checker.Check(name + ".attention_norm", layer.attention_norm, config.hidden);
  checker.Check(name + ".ffn_up", layer.ffn_up, config.ffn, config.hidden);
  checker.Check(name + ".ffn_down", layer.ffn_down, config.hidden, config.ffn);
  checker.Check(name + ".ffn_norm", layer.ffn_norm, config.hidden);
}

}  // namespace

absl::Status ValidateWeights(const EncoderConfig& config, const EncoderWeights& weights) {
  ATTENDANT_RETURN_IF_ERROR(Validate(config));
  if (static_cast<int64_t>(weights.layers.size()) != config.layers) {
    return absl::InvalidArgumentError(absl::StrCat("there are weights of ", weights.layers.size(),
                                                   " layers, the configuration asks for ",
                                                   config.layers));
  }
  ShapeChecker checker;
  checker.Check<2>("token_embedding", weights.token_embedding, {config.vocab, config.hidden});
  checker.Check<2>("position_embedding", weights.position_embedding,
                   {config.max_positions, config.hidden});
  checker.Check<2>("segment_embedding", weights.segment_embedding,
                   {config.segment_types, config.hidden});
  checker.Check("embedding_norm", weights.embedding_norm, config.hidden);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    CheckLayer(config, weights.layers[i], absl::StrCat("layer ", i), checker);
  }
  return checker.status();
}

}  // namespace attendant
