// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/attention/check_call.h"
#include "kernels/attention/reference/reference.h"
#include "kernels/attention/registry.h"
#include "kernels/attention/scored/scored_attention.h"
#include "kernels/attention/values.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"

// Additive attention (Bahdanau, Cho, Bengio 2015), and Luong's concat, which is the same with the
// two weights side by side: W [q; k] = W_q q + W_k k.
namespace attendant::attention {
namespace {

constexpr ParameterInfo kAdditiveParameters[] = {
    {.name = "query_weight", .shape = "[units, query dim]"},
    {.name = "key_weight", .shape = "[units, key dim]"},
    {.name = "score_weight", .shape = "[1, units]"},
    {.name = "bias", .shape = "[1, units]", .optional = true}};
constexpr ParameterInfo kConcatParameters[] = {
    {.name = "weight", .shape = "[units, query dim + key dim]"},
    {.name = "score_weight", .shape = "[1, units]"}};

// A linear map's weight [units, dim], perhaps some columns of a wider one.
struct UnitWeight {
  const float* values = nullptr;
  int64_t row_stride = 0;
};

struct Weights {
  int64_t units = 0;
  UnitWeight query, key;
  const float* score = nullptr;  // [units]
  const float* bias = nullptr;   // [units] or null
};

absl::StatusOr<Weights> WeightsOf(const Call& call) {
  const bool concat = call.kind == Kind::kLuongConcat;
  const int64_t query_dim = call.query.dim, key_dim = call.key.dim;
  ATTENDANT_ASSIGN_OR_RETURN(const auto query,
                             RequireParameter(call, concat ? "weight" : "query_weight", -1,
                                              concat ? query_dim + key_dim : query_dim));
  Weights weights;
  weights.units = query.dim(0);
  weights.query = {query.data(), query.dim(1)};
  if (concat) {
    weights.key = {query.data() == nullptr ? nullptr : query.data() + query_dim, query.dim(1)};
  } else {
    ATTENDANT_ASSIGN_OR_RETURN(const auto key,
                               RequireParameter(call, "key_weight", weights.units, key_dim));
    weights.key = {key.data(), key_dim};
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto score,
                             RequireParameter(call, "score_weight", 1, weights.units));
  weights.score = score.data();
  if (!concat && HasParameter(call, "bias")) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto bias, RequireParameter(call, "bias", 1, weights.units));
    weights.bias = bias.data();
  }
  return weights;
}

// Panels hold W_k k, or e^(2 W_k k) where that does (see scored_kernels.inc), and in a last row
// which of them. A block's flag is 1 if all are exponentials: scores of those take 0.4 times as
// long.
class AdditiveModel final : public CallKeysModel {
 public:
  AdditiveModel(const Call& call, const Weights& weights, const ScoredKernels* kernels)
      : CallKeysModel(call), weights_(weights), kernels_(kernels) {}

  int64_t score_dim() const override { return weights_.units + 1; }
  int64_t scratch_floats() const override {
    const int64_t keys = 2 * kKeyBlock * call_.key.dim;
    return std::max(keys, 2 * kQueryStride * (call_.query.dim + weights_.units));
  }

  void Prepare(const ScoredKeys& block) const override {
    const int64_t dim = call_.key.dim;
    float* rows = block.scratch;
    float* columns = rows + kKeyBlock * dim;
    LoadKeyRows(*kernels_, call_, call_.key, block.range, rows);
    kernels_->transpose(rows, dim, block.range.count, dim, columns, kKeyBlock);
    const int64_t n = WholeVectors(block.range.count);
    Project(weights_.key, dim, columns, kKeyBlock, n, block.panel);
    const bool all = kernels_->key_exponentials(block.panel, kKeyBlock, weights_.units, n,
                                                block.panel + weights_.units * kKeyBlock);
    *block.block_flag = all ? 1 : 0;
    LoadKeyRows(*kernels_, call_, call_.value, block.range, block.values);
  }

  void Score(const QueryBlock& block) const override {
    const int64_t dim = call_.query.dim;
    float* rows = block.scratch;
    float* columns = rows + kQueryStride * dim;
    float* queries = columns + kQueryStride * dim;
    float* exponentials = queries + kQueryStride * weights_.units;
    LoadQueryRows(*kernels_, call_, block, rows);
    std::fill(rows + block.rows * dim, columns, 0.0f);
    kernels_->transpose(rows, dim, kQueryStride, dim, columns, kQueryStride);
    Project(weights_.query, dim, columns, kQueryStride, kQueryStride, queries);
    for (int64_t u = 0; weights_.bias != nullptr && u < weights_.units; ++u) {
      for (int64_t r = 0; r < kQueryStride; ++r) queries[u * kQueryStride + r] += weights_.bias[u];
    }
    std::copy_n(queries, kQueryStride * weights_.units, exponentials);
    kernels_->double_exponential(exponentials, kQueryStride * weights_.units);
    ScoreBlocks(block, queries, exponentials);
  }

 private:
  static constexpr int64_t kQueryStride = 16;  // of a block of queries, transposed
  int64_t WholeVectors(int64_t n) const { return RoundUp(n, kernels_->lanes); }

  // out [units, stride] = weight [units, dim] columns [dim, stride], the first n columns
  void Project(const UnitWeight& weight, int64_t dim, const float* columns, int64_t stride,
               int64_t n, float* out) const {
    kernels_->matmul({.a = weight.values,
                      .a_row_stride = weight.row_stride,
                      .b = columns,
                      .b_row_stride = stride,
                      .c = out,
                      .c_row_stride = stride,
                      .m = weights_.units,
                      .n = n,
                      .k = dim});
  }

  void ScoreBlocks(const QueryBlock& block, const float* queries, const float* exponentials) const {
    for (int64_t key = block.begin; key < block.end; key += kKeyBlock) {
      const float* keys = block.panel + key * score_dim();
      const TanhScoreArgs args{.queries = queries,
                               .exponentials = exponentials,
                               .keys = keys,
                               .flags = keys + weights_.units * kKeyBlock,
                               .score_weight = weights_.score,
                               .scores = block.scores + key,
                               .query_stride = kQueryStride,
                               .key_stride = kKeyBlock,
                               .score_stride = block.score_stride,
                               .units = weights_.units,
                               .rows = block.rows,
                               .columns = std::min(kKeyBlock, block.end - key)};
      const bool all = block.block_flags[key / kKeyBlock] != 0;
      all ? kernels_->tanh_scores_of_exponentials(args) : kernels_->tanh_scores(args);
    }
  }

  Weights weights_;
  const ScoredKernels* kernels_;
};

absl::StatusOr<Cost> MeasureAdditive(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(RefuseScale(call));
  ATTENDANT_ASSIGN_OR_RETURN(Weights weights, WeightsOf(call));
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost,
                             OutputCost(call, call.query.heads, call.value.dim, call.query.heads));
  ATTENDANT_RETURN_IF_ERROR(ScorePairs(call));
  const int64_t pairs = SeenPairs(call);
  ATTENDANT_RETURN_IF_ERROR(
      MeasureScored(call, AdditiveModel(call, weights, nullptr), threads, cost));
  // A tanh takes about four times as long as a multiply-add.
  ATTENDANT_RETURN_IF_ERROR(AddOperations(
      {{call.query.heads, pairs, 4 * weights.units + call.value.dim + kSoftmaxOperations},
       {call.query.heads, call.queries.tokens(), weights.units, call.query.dim},
       {call.query.heads, call.keys.tokens(), weights.units, call.key.dim}},
      cost));
  AddOverheads(call, pairs, {.sequence = 49152, .query = 14336, .key = 2560}, cost);
  AddScoredOverheads(call, pairs, cost);
  return cost;
}

absl::Status RunAdditive(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                         const Outputs& outputs) {
  const ScoredKernels& kernels = ScoredKernelsOf(call);
  RunScored(call, AdditiveModel(call, *WeightsOf(call), &kernels), kernels, pool, scratch, outputs);
  return absl::OkStatus();
}

absl::Status ReferenceAdditive(const Call& call, const Outputs& outputs) {
  const Weights weights = *WeightsOf(call);
  const auto project = [&](const std::byte* row, int64_t dim, const UnitWeight& weight,
                           int64_t unit) {
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i) {
      sum += static_cast<double>(ReadValue(row, call.dtype, i)) *
             static_cast<double>(weight.values[unit * weight.row_stride + i]);
    }
    return sum;
  };
  const auto score = [&](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    const std::byte* q = call.query.at(call.queries, call.dtype, sequence, head, query);
    const std::byte* k = call.key.at(call.keys, call.dtype, sequence, head, key);
    double sum = 0;
    for (int64_t u = 0; u < weights.units; ++u) {
      const double bias = weights.bias == nullptr ? 0.0 : static_cast<double>(weights.bias[u]);
      const double hidden = project(q, call.query.dim, weights.query, u) +
                            project(k, call.key.dim, weights.key, u) + bias;
      sum += static_cast<double>(weights.score[u]) * std::tanh(hidden);
    }
    return sum;
  };
  reference::SoftmaxAttention(call, score, outputs);
  return absl::OkStatus();
}

}  // namespace

const Operator kAdditiveOperator{
    .kind = Kind::kAdditive,
    .name = "additive",
    .title = "additive (Bahdanau)",
    .formula = "softmax(w . tanh(W_q q + W_k k + b)) v",
    .time = "O(n^2 u), u units, a tanh each",
    .memory = "O(n (u + d))",
    .use = "Where query and key live in different spaces and few pairs are to be scored well.",
    .gives_weights = true,
    .parameters = kAdditiveParameters,
    .measure = MeasureAdditive,
    .run = RunAdditive,
    .reference = ReferenceAdditive,
};

const Operator kLuongConcatOperator{
    .kind = Kind::kLuongConcat,
    .name = "luong_concat",
    .title = "Luong, concat",
    .formula = "softmax(w . tanh(W [q; k])) v",
    .time = "O(n^2 u), u units, a tanh each",
    .memory = "O(n (u + d))",
    .use = "Additive attention with one weight over query and key side by side.",
    .gives_weights = true,
    .parameters = kConcatParameters,
    .measure = MeasureAdditive,
    .run = RunAdditive,
    .reference = ReferenceAdditive,
};

}  // namespace attendant::attention
