// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/scored/scored_attention.h"

#include <algorithm>
#include <array>

#include "kernels/attention/check_call.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/scored/wave.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::attention {
namespace {

bool Averaged(const Call& call) { return call.need_weights == WeightsWanted::kAveraged; }

// Sizes, in floats.
struct Layout {
  Layout(const Call& call, const ScoreModel& model)
      : score_dim(model.score_dim()),
        value_dim(call.value.dim),
        // Beyond whole blocks, so that rows of long sequences do not share the cache's sets.
        score_stride(RoundUp(model.max_keys(), kKeyBlock) + 16),
        thread_model(RoundUp(model.scratch_floats(), 16)),
        thread_total(thread_model + (kQueryBlock + 1) * score_stride +
                     RoundUp((kQueryBlock + 1) * value_dim, 16)) {}

  static int64_t Blocks(int64_t keys) { return CeilDivide(keys, kKeyBlock); }
  // One head's panel, its values and two flags a block.
  int64_t Head(int64_t keys) const {
    const int64_t panel = score_dim * RoundUp(keys, kKeyBlock);
    return panel + RoundUp(keys * value_dim + (2 * Blocks(keys) + 3) / 4, 16);
  }

  int64_t score_dim;
  int64_t value_dim;
  int64_t score_stride;  // also the length of a row of bias
  int64_t thread_model;
  int64_t thread_total;
};

// One head's prepared keys. `block_flags` [2 * blocks]: the model's, then 1 where values are not
// finite.
struct Head {
  Head(const Layout& layout, int64_t keys, float* memory)
      : blocks(Layout::Blocks(keys)),
        panel(memory),
        values(panel + layout.score_dim * blocks * kKeyBlock),
        block_flags(reinterpret_cast<uint8_t*>(values + keys * layout.value_dim)) {}

  bool Finite(int64_t begin, int64_t end) const {
    for (int64_t b = begin / kKeyBlock; b * kKeyBlock < end; ++b) {
      if (block_flags[blocks + b] != 0) return false;
    }
    return true;
  }

  int64_t blocks;
  float* panel;
  float* values;
  uint8_t* block_flags;
};

// A group of work is one head of one sequence, or, where weights are averaged, all its heads.
class Runner {
 public:
  Runner(const Call& call, const ScoreModel& model, const ScoredKernels& kernels, int threads,
         std::span<std::byte> scratch, const Outputs& outputs)
      : call_(call),
        model_(model),
        kernels_(kernels),
        outputs_(outputs),
        layout_(call, model),
        group_heads_(Averaged(call) ? call.query.heads : 1),
        thread_scratch_(reinterpret_cast<float*>(scratch.data())),
        heads_(thread_scratch_ + threads * layout_.thread_total),
        heads_floats_(static_cast<int64_t>(scratch.size() / sizeof(float)) -
                      threads * layout_.thread_total) {}

  void Run(ThreadPool& pool) {
    const int64_t groups = call_.queries.batch() * call_.query.heads / group_heads_;
    int64_t weights = 0;
    for (int64_t next = 0; next < groups;) {
      wave_.Clear();
      while (next < groups && AddGroup(next, weights)) ++next;
      pool.ParallelFor(wave_.tasks(kPrepare),
                       [&](int64_t task, int thread) { Prepare(task, thread); });
      pool.ParallelFor(wave_.tasks(kAttend),
                       [&](int64_t task, int thread) { Attend(task, thread); });
    }
  }

 private:
  enum Phase : size_t { kPrepare, kAttend };

  bool AddGroup(int64_t index, int64_t& weights) {
    const int64_t per_sequence = call_.query.heads / group_heads_;
    const int64_t sequence = index / per_sequence;
    const int64_t keys = model_.Keys(sequence), queries = call_.queries.len(sequence);
    const Wave::HeadGroup group{
        .sequence = sequence,
        .head = index % per_sequence,
        .weights = weights,
        .floats = group_heads_ * layout_.Head(keys),
        .tasks = {group_heads_ * Layout::Blocks(keys), CeilDivide(queries, kQueryBlock)}};
    if (!wave_.Add(group, heads_floats_)) return false;
    weights += queries * keys;
    return true;
  }

  float* ThreadScratch(int thread) const { return thread_scratch_ + thread * layout_.thread_total; }

  Head HeadOf(const Wave::HeadGroup& group, int64_t head, int64_t keys) const {
    return Head(layout_, keys, heads_ + group.floats + head * layout_.Head(keys));
  }

  void Prepare(int64_t task, int thread) const {
    const cpu::ScopedDenormalFlush flush;
    const Wave::HeadGroup& group = wave_.GroupOf(kPrepare, task);
    const int64_t keys = model_.Keys(group.sequence);
    const int64_t index = (task - group.tasks[kPrepare]) / Layout::Blocks(keys);
    const int64_t block = (task - group.tasks[kPrepare]) % Layout::Blocks(keys);
    const Head head = HeadOf(group, index, keys);
    const int64_t begin = block * kKeyBlock, count = std::min(kKeyBlock, keys - begin);
    float* values = head.values + begin * layout_.value_dim;
    model_.Prepare({.range = {.sequence = group.sequence,
                              .head = group.head + index,
                              .begin = begin,
                              .count = count},
                    .panel = head.panel + begin * layout_.score_dim,
                    .values = values,
                    .block_flag = head.block_flags + block,
                    .scratch = ThreadScratch(thread)});
    const bool finite = kernels_.finite(values, count * layout_.value_dim);
    head.block_flags[head.blocks + block] = finite ? 0 : 1;
  }

  void Attend(int64_t task, int thread) const {
    const cpu::ScopedDenormalFlush flush;
    const Wave::HeadGroup& group = wave_.GroupOf(kAttend, task);
    const int64_t query = (task - group.tasks[kAttend]) * kQueryBlock;
    for (int64_t h = 0; h < group_heads_; ++h) AttendHead(group, h, query, ThreadScratch(thread));
  }

  // kQueryBlock queries of one head, or what is left.
  void AttendHead(const Wave::HeadGroup& group, int64_t group_head, int64_t query,
                  float* scratch) const {
    const Head head = HeadOf(group, group_head, model_.Keys(group.sequence));
    float* scores = scratch + layout_.thread_model;
    float* bias = scores + kQueryBlock * layout_.score_stride;
    float* out = bias + layout_.score_stride;
    QueryBlock block{
        .sequence = group.sequence,
        .head = group.head + group_head,
        .query = query,
        .rows = std::min(kQueryBlock, call_.queries.len(group.sequence) - query),
        .begin = model_.KeysBegin(group.sequence, query) / kKeyBlock * kKeyBlock,
        .panel = head.panel,
        .block_flags = head.block_flags,
        .scores = scores,
        .score_stride = layout_.score_stride,
        .scratch = scratch,
    };
    const int64_t end = model_.KeysEnd(group.sequence, query + block.rows - 1);
    block.end = std::max(block.begin, end);
    if (block.end > block.begin) model_.Score(block);

    std::array<float, kQueryBlock> inverse_sums{};
    for (int64_t r = 0; r < block.rows; ++r) {
      inverse_sums[static_cast<size_t>(r)] = ComputeRowWeights(block, r, bias);
    }
    SumValues(block, head, out);
    for (int64_t r = 0; r < block.rows; ++r) {
      const float inverse = inverse_sums[static_cast<size_t>(r)];
      StoreOut(block, r, out + r * layout_.value_dim, inverse);
      if (call_.need_weights != WeightsWanted::kNone) StoreWeights(group, block, r, inverse);
    }
  }

  // Turns one row of scores into weights before they are normalized, zeros for keys that the query
  // does not see; returns 1 / their sum, or 0 where there are none.
  float ComputeRowWeights(const QueryBlock& block, int64_t r, float* bias) const {
    const int64_t query = block.query + r;
    float* scores = block.scores + r * block.score_stride;
    const int64_t begin = std::min(model_.KeysBegin(block.sequence, query), block.end);
    const int64_t end = std::max(model_.KeysEnd(block.sequence, query), begin);
    std::fill(scores + block.begin, scores + begin, 0.0f);
    std::fill(scores + end, scores + block.end, 0.0f);
    float sum = 0;
    if (!model_.softmax()) {
      sum = kernels_.sum(scores + begin, end - begin);
    } else if (begin < end) {
      const bool biased = model_.Bias(block.sequence, block.head, query, bias);
      sum = kernels_.exponentials(scores + begin, biased ? bias + begin : nullptr, end - begin);
    }
    return sum == 0 ? 0 : 1 / sum;
  }

  // out [rows, value_dim] = scores values
  void SumValues(const QueryBlock& block, const Head& head, float* out) const {
    SumWeightedValues(kernels_,
                      {.a = block.scores + block.begin,
                       .a_row_stride = block.score_stride,
                       .b = head.values + block.begin * layout_.value_dim,
                       .b_row_stride = layout_.value_dim,
                       .c = out,
                       .c_row_stride = layout_.value_dim,
                       .m = block.rows,
                       .n = layout_.value_dim,
                       .k = block.end - block.begin},
                      head.Finite(block.begin, block.end), out + kQueryBlock * layout_.value_dim);
  }

  void StoreOut(const QueryBlock& block, int64_t r, const float* row, float inverse) const {
    std::byte* out =
        outputs_.out.at(call_.queries, call_.dtype, block.sequence, block.head, block.query + r);
    kernels_.store_row(row, inverse, layout_.value_dim, call_.dtype == DType::kBf16, out);
  }

  void StoreWeights(const Wave::HeadGroup& group, const QueryBlock& block, int64_t r,
                    float inverse) const {
    const int64_t keys = model_.Keys(block.sequence);
    float* row = outputs_.attention_weights + group.weights + (block.query + r) * keys;
    if (block.head == group.head) std::fill(row, row + keys, 0.0f);
    const float share = inverse / static_cast<float>(group_heads_);
    kernels_.add_scaled(block.scores + r * block.score_stride + block.begin, share,
                        block.end - block.begin, row + block.begin);
  }

  const Call& call_;
  const ScoreModel& model_;
  const ScoredKernels& kernels_;
  const Outputs& outputs_;
  const Layout layout_;
  const int64_t group_heads_;
  float* const thread_scratch_;
  float* const heads_;
  const int64_t heads_floats_;
  Wave wave_;
};

}  // namespace

int64_t CallKeysModel::KeysBegin(int64_t sequence, int64_t query) const {
  return MaskReader(call_, sequence, 0).KeysBegin(query);
}

int64_t CallKeysModel::KeysEnd(int64_t sequence, int64_t query) const {
  return MaskReader(call_, sequence, 0).KeysEnd(query);
}

bool CallKeysModel::Bias(int64_t sequence, int64_t head, int64_t query, float* bias) const {
  const Mask& mask = call_.mask;
  if (!mask.tensor.present() && mask.keys.dim(0) == 0 && mask.alibi_slopes.empty()) return false;
  const MaskReader reader(call_, sequence, head);
  const int64_t begin = reader.KeysBegin(query);
  reader.KeyBiases(query, begin, std::max<int64_t>(reader.KeysEnd(query) - begin, 0), bias + begin);
  return true;
}

void LoadQueryRows(const ScoredKernels& kernels, const Call& call, const QueryBlock& block,
                   float* rows) {
  for (int64_t r = 0; r < block.rows; ++r) {
    kernels.load_row(
        call.query.at(call.queries, call.dtype, block.sequence, block.head, block.query + r),
        call.dtype == DType::kBf16, call.query.dim, rows + r * call.query.dim);
  }
}

void LoadKeyRows(const ScoredKernels& kernels, const Call& call, const InputRows& operand,
                 const KeyRange& range, float* rows) {
  const TensorView<const uint8_t, 1>& mask = call.mask.keys;
  for (int64_t i = 0; i < range.count; ++i) {
    float* row = rows + i * operand.dim;
    const int64_t key = range.begin + i;
    if (mask.dim(0) != 0 && mask.data()[call.keys.start(range.sequence) + key] == 0) {
      std::fill(row, row + operand.dim, 0.0f);
    } else {
      kernels.load_row(operand.at(call.keys, call.dtype, range.sequence, range.head, key),
                       call.dtype == DType::kBf16, operand.dim, row);
    }
  }
}

void ScoreDots(const ScoredKernels& kernels, const float* queries, int64_t dim,
               const QueryBlock& block) {
  for (int64_t key = block.begin; key < block.end; key += kKeyBlock) {
    kernels.matmul({.a = queries,
                    .a_row_stride = dim,
                    .b = block.panel + key * dim,
                    .b_row_stride = kKeyBlock,
                    .c = block.scores + key,
                    .c_row_stride = block.score_stride,
                    .m = block.rows,
                    .n = std::min(kKeyBlock, block.end - key),
                    .k = dim});
  }
}

void SumWeightedValues(const ScoredKernels& kernels, const StridedMatmulArgs& args, bool finite,
                       float* row) {
  if (finite) return kernels.matmul(args);
  for (int64_t r = 0; r < args.m; ++r) {
    const float* weights = args.a + r * args.a_row_stride;
    float* out = args.c + r * args.c_row_stride;
    if (!args.accumulate) std::fill_n(out, args.n, 0.0f);
    // The order of sums is that of the matmul.
    for (int64_t begin = 0; begin < args.k; begin += kMatmulBlock) {
      std::fill_n(row, args.n, 0.0f);
      for (int64_t key = begin; key < std::min(begin + kMatmulBlock, args.k); ++key) {
        if (weights[key] == 0) continue;
        kernels.add_scaled(args.b + key * args.b_row_stride, weights[key], args.n, row);
      }
      kernels.add_scaled(row, 1, args.n, out);
    }
  }
}

void AddScoredOverheads(const Call& call, int64_t seen, Cost& cost) {
  if (HasKeyBiases(call)) AddOverheads(call, seen, {.query = 5120, .score = 48}, cost);
  if (call.need_weights == WeightsWanted::kNone) return;
  const int64_t pairs = ScorePairs(call).value_or(kMaxElements);
  AddOverheads(call, pairs, {.query = 1024, .score = 32}, cost);
}

absl::Status MeasureScored(const Call& call, const ScoreModel& model, int threads, Cost& cost) {
  const int64_t group_heads = Averaged(call) ? call.query.heads : 1;
  const int64_t keys = model.max_keys() + kKeyBlock;
  // All that is added up below stays under a small multiple of these.
  ATTENDANT_RETURN_IF_ERROR(
      CheckedProduct("scratch of heads, keys and units",
                     {call.query.heads, keys, model.score_dim() + call.value.dim + 1}));
  ATTENDANT_RETURN_IF_ERROR(
      CheckedProduct("scratch of threads, queries and keys",
                     {threads, kQueryBlock + 1, keys + model.scratch_floats() + call.value.dim}));
  const Layout layout(call, model);
  const int64_t largest = group_heads * layout.Head(model.max_keys());
  int64_t total = 0;
  // Of empty sequences there may be 2^48.
  for (int64_t i = 0; largest > 0 && i < call.queries.batch() && total < Wave::kFloats; ++i) {
    total += call.query.heads * layout.Head(model.Keys(i));
  }
  const int64_t wave = std::max(largest, std::min(total, Wave::kFloats));
  cost.scratch_bytes = (threads * layout.thread_total + wave) * static_cast<int64_t>(sizeof(float));
  return absl::OkStatus();
}

void RunScored(const Call& call, const ScoreModel& model, const ScoredKernels& kernels,
               ThreadPool& pool, std::span<std::byte> scratch, const Outputs& outputs) {
  Runner(call, model, kernels, pool.threads(), scratch, outputs).Run(pool);
}

}  // namespace attendant::attention
