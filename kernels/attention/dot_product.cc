// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/attention/check_call.h"
#include "kernels/attention/reference.h"
#include "kernels/attention/registry.h"

namespace attendant::attention {
namespace {

float ScaleOf(const Call& call) {
  return call.scale.value_or(1 / std::sqrt(static_cast<float>(call.query.dim)));
}

absl::StatusOr<Cost> MeasureDotProduct(const Call& call, int /*threads*/) {
  absl::Status status = CheckCall(call, call.query.heads, /*gives_weights=*/true);
  if (status.ok()) status = CheckEqual("query", call.query.dim, "key", call.key.dim, "dims");
  if (!status.ok()) return status;
  absl::StatusOr<Cost> cost = OutputCost(call, call.query.heads, call.value.dim, call.query.heads);
  if (!cost.ok()) return cost;
  absl::StatusOr<int64_t> pairs = ScorePairs(call);
  if (!pairs.ok()) return pairs.status();
  absl::StatusOr<int64_t> operations =
      CheckedProduct("multiply-adds of heads, pairs and dims",
                     {call.query.heads, *pairs, call.query.dim + call.value.dim});
  if (!operations.ok()) return operations.status();
  cost->operations = *operations;
  return cost;
}

absl::Status ReferenceDotProduct(const Call& call, const Outputs& outputs) {
  const double scale = static_cast<double>(ScaleOf(call));
  const auto score = [&](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    return reference::Dot(call, sequence, head, query, key) * scale;
  };
  reference::SoftmaxAttention(call, score, outputs);
  return absl::OkStatus();
}

absl::Status RunDotProduct(const Call& call, ThreadPool& /*pool*/, std::span<std::byte> /*scratch*/,
                           const Outputs& outputs) {
  return ReferenceDotProduct(call, outputs);
}

}  // namespace

const Operator kDotProductOperator{
    .kind = Kind::kDotProduct,
    .name = "scaled_dot_product",
    .title = "scaled dot-product",
    .formula = "softmax(q k^T / sqrt(d)) v",
    .time = "O(n^2 d)",
    .memory = "O(n^2) with weights, else O(n)",
    .use = "The foundation of every transformer; exact, and the weights can be seen.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureDotProduct,
    .run = RunDotProduct,
    .reference = ReferenceDotProduct,
};

}  // namespace attendant::attention
