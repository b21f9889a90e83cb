// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/reference/reference.h"
#include "kernels/attention/registry.h"
#include "kernels/attention/scored/linear_sums.h"
#include "kernels/attention/scored/scored_attention.h"
#include "kernels/attention/values.h"
#include "kernels/core/status_macros.h"

namespace attendant::attention {
namespace {

// The quadratic form, for calls that need the weights. Panels are mapped keys, transposed; keys
// that the key mask leaves out have no features at all.
class LinearModel final : public CallKeysModel {
 public:
  LinearModel(const Call& call, const ScoredKernels* kernels)
      : CallKeysModel(call), kernels_(kernels) {}

  int64_t score_dim() const override { return call_.key.dim; }
  int64_t scratch_floats() const override { return kKeyBlock * call_.key.dim; }
  bool softmax() const override { return false; }

  void Prepare(const ScoredKeys& block) const override {
    LoadKeyFeatures(*kernels_, call_, block.range, block.scratch);
    kernels_->transpose(block.scratch, call_.key.dim, block.range.count, call_.key.dim, block.panel,
                        kKeyBlock);
    LoadKeyRows(*kernels_, call_, call_.value, block.range, block.values);
  }

  void Score(const QueryBlock& block) const override {
    LoadQueryFeatures(*kernels_, call_, block, block.scratch);
    ScoreDots(*kernels_, block.scratch, call_.key.dim, block);
  }

 private:
  const ScoredKernels* kernels_;
};

absl::Status CheckLinear(const Call& call) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(RefuseScale(call));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.dim, "key", call.key.dim, "dims"));
  const Mask& mask = call.mask;
  if (mask.tensor.present() || mask.window >= 0 || !mask.alibi_slopes.empty()) {
    return absl::UnimplementedError(
        "linear attention sums keys up before any query sees them: it takes a key mask and causal, "
        "but no mask tensor, window or ALiBi");
  }
  if (call.feature_map != FeatureMap::kEluPlusOne && call.feature_map != FeatureMap::kRelu) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no feature map ", static_cast<int>(call.feature_map)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Cost> MeasureLinear(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckLinear(call));
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost,
                             OutputCost(call, call.query.heads, call.value.dim, call.query.heads));
  if (call.need_weights == WeightsWanted::kNone) {
    ATTENDANT_RETURN_IF_ERROR(MeasureLinearSums(call, threads, cost));
  } else {
    ATTENDANT_RETURN_IF_ERROR(MeasureScored(call, LinearModel(call, nullptr), threads, cost));
    ATTENDANT_ASSIGN_OR_RETURN(int64_t pairs, ScorePairs(call));
    ATTENDANT_RETURN_IF_ERROR(
        AddOperations({{call.query.heads, pairs, call.key.dim + call.value.dim}}, cost));
    AddOverheads(call, pairs, {.sequence = 12288, .query = 4096, .key = 1024, .score = 48}, cost);
  }
  return cost;
}

absl::Status RunLinear(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                       const Outputs& outputs) {
  const ScoredKernels& kernels = ScoredKernelsOf(call);
  if (call.need_weights == WeightsWanted::kNone) {
    RunLinearSums(call, kernels, pool, scratch, outputs);
  } else {
    RunScored(call, LinearModel(call, &kernels), kernels, pool, scratch, outputs);
  }
  return absl::OkStatus();
}

double Feature(FeatureMap map, double x) {
  if (map == FeatureMap::kRelu) return x < 0 ? 0 : x;
  return x > 0 ? x + 1 : std::exp(x);
}

// The quadratic form again: weights are phi(q) . phi(k), normalized.
absl::Status ReferenceLinear(const Call& call, const Outputs& outputs) {
  const auto weight = [&](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    const std::byte* q = call.query.at(call.queries, call.dtype, sequence, head, query);
    const std::byte* k = call.key.at(call.keys, call.dtype, sequence, head, key);
    double sum = 0;
    for (int64_t d = 0; d < call.query.dim; ++d) {
      sum += Feature(call.feature_map, static_cast<double>(ReadValue(q, call.dtype, d))) *
             Feature(call.feature_map, static_cast<double>(ReadValue(k, call.dtype, d)));
    }
    // Softmax of the logarithm is what is wanted: weight / sum of weights.
    return std::log(sum);
  };
  reference::SoftmaxAttention(call, weight, outputs);
  return absl::OkStatus();
}

}  // namespace

const Operator kLinearOperator{
    .kind = Kind::kLinear,
    .name = "linear",
    .title = "linear",
    .formula = "phi(q) (phi(k)^T v) / (phi(q) . sum of phi(k)), phi(x) = elu(x) + 1 or max(x, 0)",
    .time = "O(n d^2)",
    .memory = "O(n d^2 / 512)",
    .use = "Very long inputs where an average over similar keys will do; needs training for it.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureLinear,
    .run = RunLinear,
    .reference = ReferenceLinear,
};

}  // namespace attendant::attention
