// SPDX-License-Identifier: Apache-2.0
// The kinds that are exact softmax attention over a mask.
#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/reference/reference.h"
#include "kernels/attention/registry.h"
#include "kernels/core/status_macros.h"

namespace attendant::attention {
namespace {

absl::StatusOr<Cost> MeasureDotProduct(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  return MeasureExact(call, threads);
}

absl::StatusOr<Cost> MeasureFlash(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/false));
  return MeasureExact(call, threads);
}

absl::StatusOr<Cost> MeasureLocal(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  if (call.mask.window < 0) {
    return absl::InvalidArgumentError("local attention needs a window of at least 0");
  }
  return MeasureExact(call, threads);
}

absl::Status ReferenceDotProduct(const Call& call, const Outputs& outputs) {
  const double scale = static_cast<double>(ScaleOf(call));
  const auto score = [&](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    return reference::Dot(call, sequence, head, query, key) * scale;
  };
  reference::SoftmaxAttention(call, score, outputs);
  return absl::OkStatus();
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
    .run = RunExact,
    .reference = ReferenceDotProduct,
};

const Operator kFlashOperator{
    .kind = Kind::kFlash,
    .name = "flash",
    .title = "flash",
    .formula = "softmax(q k^T / sqrt(d)) v, tile by tile",
    .time = "O(n^2 d)",
    .memory = "O(n)",
    .use = "The same result where nobody looks at the weights: they are never held, at any length.",
    .gives_weights = false,
    .parameters = {},
    .measure = MeasureFlash,
    .run = RunExact,
    .reference = ReferenceDotProduct,
};

const Operator kLocalOperator{
    .kind = Kind::kLocal,
    .name = "local",
    .title = "local (sliding window)",
    .formula = "softmax(q k^T / sqrt(d)) v over the keys with |i - j| <= window",
    .time = "O(n w d)",
    .memory = "O(n^2) with weights, else O(n)",
    .use = "Long texts whose words need their neighbours only.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureLocal,
    .run = RunExact,
    .reference = ReferenceDotProduct,
};

}  // namespace attendant::attention
