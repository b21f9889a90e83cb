// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/attention/reference/reference.h"
#include "kernels/attention/registry.h"
#include "kernels/attention/scored/scored_attention.h"
#include "kernels/attention/values.h"
#include "kernels/core/status_macros.h"

// Linformer (Wang et al. 2020): keys and values are projected along the sequence to `projected`
// keys, which the queries attend to. A sequence shorter than the projections uses their first
// columns. Keys that the key mask leaves out are left out of both projections; a projected key that
// only they (or keys beyond the sequence's end) have a part in is left out itself. So projections
// that are the identity give exactly full attention, masks included.
namespace attendant::attention {
namespace {

constexpr ParameterInfo kParameters[] = {
    {.name = "key_projection", .shape = "[projected, keys or more]"},
    {.name = "value_projection", .shape = "[projected, keys or more]", .optional = true}};

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();

float ProjectedScale(const Call& call) {
  return call.scale.value_or(1 / std::sqrt(static_cast<float>(call.query.dim)));
}

struct Projections {
  TensorView<const float, 2> key, value;  // [projected, columns]
  // [projected]: the first column in which either has a number but 0; columns where none has. Only
  // to compute with: found once, for a search by each sequence may cost more than its attention.
  std::vector<int64_t> first_columns{};

  int64_t projected() const { return key.dim(0); }
  int64_t columns() const { return key.dim(1); }
};

absl::StatusOr<Projections> ProjectionsOf(const Call& call) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto key, RequireParameter(call, "key_projection", -1, -1));
  Projections projections{.key = key, .value = key};
  if (HasParameter(call, "value_projection")) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto value,
                               RequireParameter(call, "value_projection", key.dim(0), key.dim(1)));
    projections.value = value;
  }
  if (key.dim(1) < call.keys.max_len()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'key_projection' is [", key.dim(0),
                                                   ", ", key.dim(1), "], the longest sequence has ",
                                                   call.keys.max_len(), " keys"));
  }
  return projections;
}

Projections ReadProjections(const Call& call) {
  Projections projections = *ProjectionsOf(call);
  const int64_t columns = projections.columns();
  const auto first = [columns](const float* row) {
    return std::find_if(row, row + columns, [](float value) { return value != 0; }) - row;
  };
  for (int64_t index = 0; index < projections.projected(); ++index) {
    projections.first_columns.push_back(
        std::min(first(projections.key.row(index)), first(projections.value.row(index))));
  }
  return projections;
}

// The projected keys that count for one sequence.
class ProjectedMask {
 public:
  ProjectedMask(const Call& call, const Projections& projections, int64_t sequence)
      : projections_(projections), keys_(call.keys.len(sequence)) {
    if (call.mask.keys.dim(0) != 0) mask_ = call.mask.keys.data() + call.keys.start(sequence);
    any_key_ = mask_ == nullptr
                   ? keys_ > 0
                   : std::any_of(mask_, mask_ + keys_, [](uint8_t m) { return m != 0; });
  }

  bool Counts(int64_t index) const {
    if (!any_key_) return false;
    const int64_t first = projections_.first_columns[static_cast<size_t>(index)];
    // A projected key of zeros has no part in any key, but it is one, with the score 0.
    if (first == projections_.columns()) return true;
    if (mask_ == nullptr) return first < keys_;
    const float* key = projections_.key.row(index);
    const float* value = projections_.value.row(index);
    for (int64_t i = first; i < keys_; ++i) {
      if (mask_[i] != 0 && (key[i] != 0 || value[i] != 0)) return true;
    }
    return false;
  }

 private:
  const Projections& projections_;
  const int64_t keys_;
  const uint8_t* mask_ = nullptr;  // of the sequence
  bool any_key_ = false;
};

// Panels are projected keys, transposed, and one more row: what is added to its scores.
class LinformerModel final : public ScoreModel {
 public:
  LinformerModel(const Call& call, Projections projections, const ScoredKernels* kernels)
      : call_(call), projections_(std::move(projections)), kernels_(kernels) {}

  int64_t score_dim() const override { return call_.key.dim + 1; }
  int64_t scratch_floats() const override {
    return kCachedKeys * std::max(call_.key.dim, call_.value.dim) +
           kKeyBlock * std::max(call_.key.dim, call_.query.dim);
  }
  int64_t Keys(int64_t /*sequence*/) const override { return projections_.projected(); }
  int64_t max_keys() const override { return projections_.projected(); }
  int64_t KeysBegin(int64_t /*sequence*/, int64_t /*query*/) const override { return 0; }
  int64_t KeysEnd(int64_t /*sequence*/, int64_t /*query*/) const override {
    return projections_.projected();
  }
  bool Bias(int64_t, int64_t, int64_t, float*) const override { return false; }

  void Prepare(const ScoredKeys& block) const override {
    const int64_t dim = call_.key.dim;
    float* rows = block.scratch + kCachedKeys * std::max(dim, call_.value.dim);
    Project(block, call_.key, projections_.key, rows);
    kernels_->transpose(rows, dim, block.range.count, dim, block.panel, kKeyBlock);
    const ProjectedMask mask(call_, projections_, block.range.sequence);
    for (int64_t i = 0; i < block.range.count; ++i) {
      block.panel[dim * kKeyBlock + i] = mask.Counts(block.range.begin + i) ? 0 : kLeftOut;
    }
    Project(block, call_.value, projections_.value, block.values);
  }

  void Score(const QueryBlock& block) const override {
    const int64_t dim = call_.query.dim;
    LoadQueryRows(*kernels_, call_, block, block.scratch);
    const float scale = ProjectedScale(call_);
    kernels_->store_row(block.scratch, scale, block.rows * dim, /*bf16=*/false, block.scratch);
    for (int64_t index = block.begin; index < block.end; index += kKeyBlock) {
      const float* panel = block.panel + index * score_dim();
      const int64_t count = std::min(kKeyBlock, block.end - index);
      kernels_->matmul({.a = block.scratch,
                        .a_row_stride = dim,
                        .b = panel,
                        .b_row_stride = kKeyBlock,
                        .c = block.scores + index,
                        .c_row_stride = block.score_stride,
                        .m = block.rows,
                        .n = count,
                        .k = dim});
      for (int64_t r = 0; r < block.rows; ++r) {
        kernels_->add_scaled(panel + dim * kKeyBlock, 1, count,
                             block.scores + r * block.score_stride + index);
      }
    }
  }

 private:
  // Keys in the cache while all rows of a block meet them.
  static constexpr int64_t kCachedKeys = 512;

  // out [count, dim] = projection [count, keys] rows [keys, dim]
  void Project(const ScoredKeys& block, const InputRows& operand,
               const TensorView<const float, 2>& projection, float* out) const {
    const int64_t keys = call_.keys.len(block.range.sequence);
    std::fill_n(out, block.range.count * operand.dim, 0.0f);
    for (int64_t key = 0; key < keys; key += kCachedKeys) {
      const int64_t count = std::min(kCachedKeys, keys - key);
      LoadKeyRows(*kernels_, call_, operand, {block.range.sequence, block.range.head, key, count},
                  block.scratch);
      kernels_->matmul({.a = projection.row(block.range.begin) + key,
                        .a_row_stride = projection.dim(1),
                        .b = block.scratch,
                        .b_row_stride = operand.dim,
                        .c = out,
                        .c_row_stride = operand.dim,
                        .m = block.range.count,
                        .n = operand.dim,
                        .k = count,
                        .accumulate = true});
    }
  }

  const Call& call_;
  const Projections projections_;
  const ScoredKernels* kernels_;
};

absl::Status CheckLinformer(const Call& call) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.dim, "key", call.key.dim, "dims"));
  const Mask& mask = call.mask;
  if (mask.causal || mask.tensor.present() || mask.window >= 0 || !mask.alibi_slopes.empty()) {
    return absl::UnimplementedError(
        "linformer mixes the keys before any query sees them: it takes a key mask, but is not "
        "causal and has no mask tensor, window or ALiBi");
  }
  return absl::OkStatus();
}

// The weights are [heads or 1, queries, projected] of each sequence, so OutputCost does not fit.
absl::Status MeasureWeights(const Call& call, int64_t projected, Cost& cost) {
  if (call.need_weights == WeightsWanted::kNone) return absl::OkStatus();
  cost.weights_heads = call.need_weights == WeightsWanted::kPerHead ? call.query.heads : 1;
  ATTENDANT_ASSIGN_OR_RETURN(
      cost.weights_bytes,
      CheckedProduct(
          "weights' bytes of heads, queries, projected keys and value",
          {cost.weights_heads, call.queries.tokens(), projected, int64_t{sizeof(float)}}));
  return absl::OkStatus();
}

absl::StatusOr<Cost> MeasureLinformer(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckLinformer(call));
  ATTENDANT_ASSIGN_OR_RETURN(const Projections projections, ProjectionsOf(call));
  Call without_weights = call;
  without_weights.need_weights = WeightsWanted::kNone;
  const int64_t heads = call.query.heads, projected = projections.projected();
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost, OutputCost(without_weights, heads, call.value.dim, heads));
  ATTENDANT_RETURN_IF_ERROR(MeasureWeights(call, projected, cost));
  ATTENDANT_RETURN_IF_ERROR(
      MeasureScored(call, LinformerModel(call, projections, nullptr), threads, cost));
  const int64_t dims = call.key.dim + call.value.dim;
  ATTENDANT_RETURN_IF_ERROR(
      AddOperations({{heads, call.keys.tokens(), projected, dims},
                     {heads, call.queries.tokens(), projected, dims + kSoftmaxOperations}},
                    cost));
  AddOverheads(call, 0, {.sequence = 28672, .query = 5120, .key = 3072}, cost);
  return cost;
}

absl::Status RunLinformer(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                          const Outputs& outputs) {
  const ScoredKernels& kernels = ScoredKernelsOf(call);
  const LinformerModel model(call, ReadProjections(call), &kernels);
  RunScored(call, model, kernels, pool, scratch, outputs);
  return absl::OkStatus();
}

double At(const std::byte* row, DType dtype, int64_t index) {
  return static_cast<double>(ReadValue(row, dtype, index));
}

// One head's projection [projected, keys] rows [keys, dim] -> [projected, dim].
std::vector<double> ProjectPlainly(const Call& call, const InputRows& operand, int64_t sequence,
                                   int64_t head, const TensorView<const float, 2>& projection) {
  std::vector<double> out;
  for (int64_t index = 0; index < projection.dim(0); ++index) {
    for (int64_t d = 0; d < operand.dim; ++d) {
      double sum = 0;
      for (int64_t key = 0; key < call.keys.len(sequence); ++key) {
        const TensorView<const uint8_t, 1>& mask = call.mask.keys;
        if (mask.dim(0) != 0 && mask.data()[call.keys.start(sequence) + key] == 0) continue;
        const std::byte* row = operand.at(call.keys, call.dtype, sequence, head, key);
        sum += static_cast<double>(projection.row(index)[key]) * At(row, call.dtype, d);
      }
      out.push_back(sum);
    }
  }
  return out;
}

// One head of one sequence; `weights` [queries, projected], or null, is added to.
void AttendPlainly(const Call& call, const Projections& projections, int64_t sequence, int64_t head,
                   float* weights, const Outputs& outputs) {
  const int64_t projected = projections.projected(), dim = call.key.dim;
  const std::vector<double> keys = ProjectPlainly(call, call.key, sequence, head, projections.key);
  const std::vector<double> values =
      ProjectPlainly(call, call.value, sequence, head, projections.value);
  const ProjectedMask mask(call, projections, sequence);
  const double share = call.need_weights == WeightsWanted::kAveraged
                           ? 1 / static_cast<double>(call.query.heads)
                           : 1.0;
  for (int64_t query = 0; query < call.queries.len(sequence); ++query) {
    const std::byte* q = call.query.at(call.queries, call.dtype, sequence, head, query);
    std::vector<double> scores;
    for (int64_t index = 0; index < projected; ++index) {
      double dot = 0;
      for (int64_t d = 0; d < dim; ++d) {
        dot += At(q, call.dtype, d) * keys[static_cast<size_t>(index * dim + d)];
      }
      const bool counts = mask.Counts(index);
      scores.push_back(counts ? dot * static_cast<double>(ProjectedScale(call))
                              : static_cast<double>(kLeftOut));
    }
    reference::Softmax(scores);
    std::byte* out = outputs.out.at(call.queries, call.dtype, sequence, head, query);
    for (int64_t d = 0; d < call.value.dim; ++d) {
      double sum = 0;
      for (int64_t index = 0; index < projected; ++index) {
        sum += scores[static_cast<size_t>(index)] *
               values[static_cast<size_t>(index * call.value.dim + d)];
      }
      WriteValue(out, call.dtype, d, static_cast<float>(sum));
    }
    for (int64_t index = 0; weights != nullptr && index < projected; ++index) {
      weights[query * projected + index] +=
          static_cast<float>(scores[static_cast<size_t>(index)] * share);
    }
  }
}

absl::Status ReferenceLinformer(const Call& call, const Outputs& outputs) {
  const Projections projections = ReadProjections(call);
  float* weights = call.need_weights == WeightsWanted::kNone ? nullptr : outputs.attention_weights;
  for (int64_t sequence = 0; sequence < call.queries.batch(); ++sequence) {
    const int64_t size = call.queries.len(sequence) * projections.projected();
    for (int64_t head = 0; head < call.query.heads; ++head) {
      const bool fresh = call.need_weights == WeightsWanted::kPerHead || head == 0;
      if (weights != nullptr && fresh) std::fill_n(weights, size, 0.0f);
      AttendPlainly(call, projections, sequence, head, weights, outputs);
      const bool last =
          call.need_weights == WeightsWanted::kPerHead || head + 1 == call.query.heads;
      if (weights != nullptr && last) weights += size;
    }
  }
  return absl::OkStatus();
}

}  // namespace

const Operator kLinformerOperator{
    .kind = Kind::kLinformer,
    .name = "linformer",
    .title = "Linformer",
    .formula = "softmax(q (E k)^T / sqrt(d)) (F v)",
    .time = "O(n p d), p projected keys",
    .memory = "O(p d)",
    .use = "Long inputs of a known greatest length, with projections trained for it; not causal.",
    .gives_weights = true,
    .parameters = kParameters,
    .measure = MeasureLinformer,
    .run = RunLinformer,
    .reference = ReferenceLinformer,
};

}  // namespace attendant::attention
