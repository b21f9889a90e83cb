// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/attention/check_call.h"
#include "kernels/attention/reference/reference.h"
#include "kernels/attention/registry.h"
#include "kernels/attention/scored/scored_attention.h"
#include "kernels/attention/values.h"
#include "kernels/core/status_macros.h"

// The multiplicative scores of Luong, Pham and Manning 2015; their concat is in additive.cc.
namespace attendant::attention {
namespace {

constexpr ParameterInfo kGeneralParameters[] = {
    {.name = "weight", .shape = "[query dim, key dim]"}};

// score = q . k, or, with a weight, q . weight k. Panels are keys, transposed.
class LuongModel final : public CallKeysModel {
 public:
  LuongModel(const Call& call, TensorView<const float, 2> weight, const ScoredKernels* kernels)
      : CallKeysModel(call), weight_(weight), kernels_(kernels) {}

  int64_t score_dim() const override { return call_.key.dim; }
  int64_t scratch_floats() const override {
    return std::max(kKeyBlock * call_.key.dim, kQueryBlock * (call_.query.dim + call_.key.dim));
  }

  void Prepare(const ScoredKeys& block) const override {
    const int64_t dim = call_.key.dim;
    LoadKeyRows(*kernels_, call_, call_.key, block.range, block.scratch);
    kernels_->transpose(block.scratch, dim, block.range.count, dim, block.panel, kKeyBlock);
    LoadKeyRows(*kernels_, call_, call_.value, block.range, block.values);
  }

  void Score(const QueryBlock& block) const override {
    ScoreDots(*kernels_, Queries(block), call_.key.dim, block);
  }

 private:
  // [rows, key dim], in the block's scratch
  const float* Queries(const QueryBlock& block) const {
    LoadQueryRows(*kernels_, call_, block, block.scratch);
    if (weight_.size() == 0) return block.scratch;
    float* turned = block.scratch + kQueryBlock * call_.query.dim;
    kernels_->matmul({.a = block.scratch,
                      .a_row_stride = call_.query.dim,
                      .b = weight_.data(),
                      .b_row_stride = call_.key.dim,
                      .c = turned,
                      .c_row_stride = call_.key.dim,
                      .m = block.rows,
                      .n = call_.key.dim,
                      .k = call_.query.dim});
    return turned;
  }

  TensorView<const float, 2> weight_;
  const ScoredKernels* kernels_;
};

// The general score's weight; of no size for dot.
absl::StatusOr<TensorView<const float, 2>> WeightOf(const Call& call) {
  if (call.kind == Kind::kLuongDot) return TensorView<const float, 2>();
  return RequireParameter(call, "weight", call.query.dim, call.key.dim);
}

absl::StatusOr<Cost> MeasureLuong(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(RefuseScale(call));
  if (call.kind == Kind::kLuongDot) {
    ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.dim, "key", call.key.dim, "dims"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(auto weight, WeightOf(call));
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost,
                             OutputCost(call, call.query.heads, call.value.dim, call.query.heads));
  ATTENDANT_RETURN_IF_ERROR(MeasureScored(call, LuongModel(call, weight, nullptr), threads, cost));
  ATTENDANT_RETURN_IF_ERROR(ScorePairs(call));
  const int64_t pairs = SeenPairs(call);
  ATTENDANT_RETURN_IF_ERROR(
      AddOperations({{call.query.heads, pairs, call.key.dim + call.value.dim + kSoftmaxOperations},
                     {call.query.heads, call.queries.tokens(), weight.size()}},
                    cost));
  AddOverheads(call, pairs, {.sequence = 12288, .query = 6144, .key = 1024}, cost);
  AddScoredOverheads(call, pairs, cost);
  return cost;
}

absl::Status RunLuong(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                      const Outputs& outputs) {
  const ScoredKernels& kernels = ScoredKernelsOf(call);
  RunScored(call, LuongModel(call, *WeightOf(call), &kernels), kernels, pool, scratch, outputs);
  return absl::OkStatus();
}

absl::Status ReferenceLuong(const Call& call, const Outputs& outputs) {
  const TensorView<const float, 2> weight = *WeightOf(call);
  const auto score = [&](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    if (weight.size() == 0) return reference::Dot(call, sequence, head, query, key);
    const std::byte* q = call.query.at(call.queries, call.dtype, sequence, head, query);
    const std::byte* k = call.key.at(call.keys, call.dtype, sequence, head, key);
    double sum = 0;
    for (int64_t i = 0; i < call.query.dim; ++i) {
      for (int64_t j = 0; j < call.key.dim; ++j) {
        sum += static_cast<double>(ReadValue(q, call.dtype, i)) *
               static_cast<double>(weight.row(i)[j]) *
               static_cast<double>(ReadValue(k, call.dtype, j));
      }
    }
    return sum;
  };
  reference::SoftmaxAttention(call, score, outputs);
  return absl::OkStatus();
}

}  // namespace

const Operator kLuongDotOperator{
    .kind = Kind::kLuongDot,
    .name = "luong_dot",
    .title = "Luong, dot",
    .formula = "softmax(q k^T) v",
    .time = "O(n^2 d)",
    .memory = "O(n d)",
    .use = "Decoders that look back at an encoder of the same width; no scale, nothing to learn.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureLuong,
    .run = RunLuong,
    .reference = ReferenceLuong,
};

const Operator kLuongGeneralOperator{
    .kind = Kind::kLuongGeneral,
    .name = "luong_general",
    .title = "Luong, general",
    .formula = "softmax(q W k^T) v",
    .time = "O(n^2 d)",
    .memory = "O(n d)",
    .use = "The same where query and key differ in width, or what matches is to be learnt.",
    .gives_weights = true,
    .parameters = kGeneralParameters,
    .measure = MeasureLuong,
    .run = RunLuong,
    .reference = ReferenceLuong,
};

}  // namespace attendant::attention
