// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/scored/scored_attention.h"

#include <algorithm>
#include <array>

#include "kernels/attention/check_call.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/scored/wave.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::attention {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool Averaged(const Call& call) { return call.weights == WeightsWanted::kAveraged; }

// Sizes, in floats.
struct Layout {
  Layout(const Call& call, const SlotKind& kind)
      : score_dim(kind.score_dim()),
        value_dim(call.value.dim),
        // Beyond whole blocks, so that rows of long sequences do not share the cache's sets.
        score_stride(RoundUp(kind.max_slots(), kSlotBlock) + 16),
        thread_kind(RoundUp(kind.scratch_floats(), 16)),
        thread_total(thread_kind + (kQueryBlock + 1) * score_stride +
                     RoundUp((kQueryBlock + 1) * value_dim, 16)) {}

  static int64_t Blocks(int64_t slots) { return RoundUp(slots, kSlotBlock) / kSlotBlock; }
  // One head's panel, values and two marks a block.
  int64_t Head(int64_t slots) const {
    const int64_t panel = score_dim * RoundUp(slots, kSlotBlock);
    return panel + RoundUp(slots * value_dim + 2 * Blocks(slots), 16);
  }

  int64_t score_dim;
  int64_t value_dim;
  int64_t score_stride;  // also the length of a row of bias
  int64_t thread_kind;
  int64_t thread_total;
};

// One head's prepared slots. `marks` [2 * blocks]: the kind's, then 1 where values are not finite.
struct Head {
  Head(const Layout& layout, int64_t slots, float* memory)
      : blocks(Layout::Blocks(slots)),
        panel(memory),
        values(panel + layout.score_dim * blocks * kSlotBlock),
        marks(values + slots * layout.value_dim) {}

  bool Finite(int64_t begin, int64_t end) const {
    for (int64_t b = begin / kSlotBlock; b * kSlotBlock < end; ++b) {
      if (marks[blocks + b] != 0) return false;
    }
    return true;
  }

  int64_t blocks;
  float* panel;
  float* values;
  float* marks;
};

// A unit of work is one head of one sequence, or, where weights are averaged, all its heads.
class Runner {
 public:
  Runner(const Call& call, const SlotKind& kind, const FamilyKernels& kernels, int threads,
         std::span<std::byte> scratch, const Outputs& outputs)
      : call_(call),
        kind_(kind),
        kernels_(kernels),
        outputs_(outputs),
        layout_(call, kind),
        unit_heads_(Averaged(call) ? call.query.heads : 1),
        thread_scratch_(reinterpret_cast<float*>(scratch.data())),
        heads_(thread_scratch_ + threads * layout_.thread_total),
        heads_floats_(static_cast<int64_t>(scratch.size() / sizeof(float)) -
                      threads * layout_.thread_total) {}

  void Run(ThreadPool& pool) {
    const int64_t units = call_.queries.batch() * call_.query.heads / unit_heads_;
    int64_t weights = 0;
    for (int64_t next = 0; next < units;) {
      wave_.Clear();
      while (next < units && AddUnit(next, weights)) ++next;
      pool.ParallelFor(wave_.tasks(kPrepare),
                       [&](int64_t task, int thread) { Prepare(task, thread); });
      pool.ParallelFor(wave_.tasks(kAttend),
                       [&](int64_t task, int thread) { Attend(task, thread); });
    }
  }

 private:
  enum Phase : size_t { kPrepare, kAttend };

  bool AddUnit(int64_t index, int64_t& weights) {
    const int64_t groups = call_.query.heads / unit_heads_;
    const int64_t sequence = index / groups;
    const int64_t slots = kind_.Slots(sequence), queries = call_.queries.len(sequence);
    const Wave::Unit unit{.sequence = sequence,
                          .head = index % groups,
                          .weights = weights,
                          .floats = unit_heads_ * layout_.Head(slots),
                          .tasks = {unit_heads_ * Layout::Blocks(slots),
                                    RoundUp(queries, kQueryBlock) / kQueryBlock}};
    if (!wave_.Add(unit, heads_floats_)) return false;
    weights += queries * slots;
    return true;
  }

  float* ThreadScratch(int thread) const { return thread_scratch_ + thread * layout_.thread_total; }

  Head HeadOf(const Wave::Unit& unit, int64_t head, int64_t slots) const {
    return Head(layout_, slots, heads_ + unit.floats + head * layout_.Head(slots));
  }

  void Prepare(int64_t task, int thread) const {
    const cpu::ScopedDenormalFlush flush;
    const Wave::Unit& unit = wave_.UnitOf(kPrepare, task);
    const int64_t slots = kind_.Slots(unit.sequence);
    const int64_t index = (task - unit.tasks[kPrepare]) / Layout::Blocks(slots);
    const int64_t block = (task - unit.tasks[kPrepare]) % Layout::Blocks(slots);
    const Head head = HeadOf(unit, index, slots);
    const int64_t begin = block * kSlotBlock, count = std::min(kSlotBlock, slots - begin);
    float* values = head.values + begin * layout_.value_dim;
    kind_.Prepare({.sequence = unit.sequence,
                   .head = unit.head + index,
                   .begin = begin,
                   .count = count,
                   .panel = head.panel + begin * layout_.score_dim,
                   .values = values,
                   .mark = head.marks + block,
                   .scratch = ThreadScratch(thread)});
    const bool finite = kernels_.finite(values, count * layout_.value_dim);
    head.marks[head.blocks + block] = finite ? 0.0f : 1.0f;
  }

  void Attend(int64_t task, int thread) const {
    const cpu::ScopedDenormalFlush flush;
    const Wave::Unit& unit = wave_.UnitOf(kAttend, task);
    const int64_t query = (task - unit.tasks[kAttend]) * kQueryBlock;
    for (int64_t h = 0; h < unit_heads_; ++h) AttendHead(unit, h, query, ThreadScratch(thread));
  }

  // kQueryBlock queries of one head, or what is left.
  void AttendHead(const Wave::Unit& unit, int64_t unit_head, int64_t query, float* scratch) const {
    const Head head = HeadOf(unit, unit_head, kind_.Slots(unit.sequence));
    float* scores = scratch + layout_.thread_kind;
    float* bias = scores + kQueryBlock * layout_.score_stride;
    float* out = bias + layout_.score_stride;
    QueryBlock block{
        .sequence = unit.sequence,
        .head = unit.head + unit_head,
        .query = query,
        .rows = std::min(kQueryBlock, call_.queries.len(unit.sequence) - query),
        .begin = kind_.SlotsBegin(unit.sequence, query) / kSlotBlock * kSlotBlock,
        .panel = head.panel,
        .marks = head.marks,
        .scores = scores,
        .score_stride = layout_.score_stride,
        .scratch = scratch,
    };
    const int64_t end = kind_.SlotsEnd(unit.sequence, query + block.rows - 1);
    block.end = std::max(block.begin, end);
    if (block.end > block.begin) kind_.Score(block);

    std::array<float, kQueryBlock> inverse_sums{};
    for (int64_t r = 0; r < block.rows; ++r) {
      inverse_sums[static_cast<size_t>(r)] = WeighRow(block, r, bias);
    }
    SumValues(block, head, out);
    for (int64_t r = 0; r < block.rows; ++r) {
      const float inverse = inverse_sums[static_cast<size_t>(r)];
      StoreOut(block, r, out + r * layout_.value_dim, inverse);
      if (call_.weights != WeightsWanted::kNone) StoreWeights(unit, block, r, inverse);
    }
  }

  // Turns one row of scores into weights before they are normalized, zeros for slots that the query
  // does not see; returns 1 / their sum, or 0 where there are none.
  float WeighRow(const QueryBlock& block, int64_t r, float* bias) const {
    const int64_t query = block.query + r;
    float* scores = block.scores + r * block.score_stride;
    const int64_t begin = std::min(kind_.SlotsBegin(block.sequence, query), block.end);
    const int64_t end = std::max(kind_.SlotsEnd(block.sequence, query), begin);
    std::fill(scores + block.begin, scores + begin, 0.0f);
    std::fill(scores + end, scores + block.end, 0.0f);
    float sum = 0;
    if (!kind_.softmax()) {
      sum = kernels_.sum(scores + begin, end - begin);
    } else if (begin < end) {
      const bool biased = kind_.Bias(block.sequence, block.head, query, bias);
      sum = kernels_.exponentials(scores + begin, biased ? bias + begin : nullptr, end - begin);
    }
    return sum == 0 ? 0 : 1 / sum;
  }

  // out [rows, value_dim] = scores values
  void SumValues(const QueryBlock& block, const Head& head, float* out) const {
    const float* values = head.values + block.begin * layout_.value_dim;
    const float* weights = block.scores + block.begin;
    const int64_t slots = block.end - block.begin;
    if (head.Finite(block.begin, block.end)) {
      return kernels_.product({.a = weights,
                               .a_row_stride = block.score_stride,
                               .b = values,
                               .b_row_stride = layout_.value_dim,
                               .c = out,
                               .c_row_stride = layout_.value_dim,
                               .m = block.rows,
                               .n = layout_.value_dim,
                               .k = slots});
    }
    // 0 times what is not finite is NaN: what a row leaves out must not be read. The order of sums
    // is that of a product, so that rows without such values have the same bits.
    float* sum = out + kQueryBlock * layout_.value_dim;
    std::fill(out, out + block.rows * layout_.value_dim, 0.0f);
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t begin = 0; begin < slots; begin += kProductBlock) {
        std::fill_n(sum, layout_.value_dim, 0.0f);
        for (int64_t slot = begin; slot < std::min(begin + kProductBlock, slots); ++slot) {
          const float weight = weights[r * block.score_stride + slot];
          if (weight == 0) continue;
          kernels_.add_scaled(values + slot * layout_.value_dim, weight, layout_.value_dim, sum);
        }
        kernels_.add_scaled(sum, 1, layout_.value_dim, out + r * layout_.value_dim);
      }
    }
  }

  void StoreOut(const QueryBlock& block, int64_t r, const float* row, float inverse) const {
    std::byte* out =
        outputs_.out.at(call_.queries, call_.dtype, block.sequence, block.head, block.query + r);
    kernels_.store_row(row, inverse, layout_.value_dim, call_.dtype == DType::kBf16, out);
  }

  void StoreWeights(const Wave::Unit& unit, const QueryBlock& block, int64_t r,
                    float inverse) const {
    const int64_t slots = kind_.Slots(block.sequence);
    float* row = outputs_.weights + unit.weights + (block.query + r) * slots;
    if (block.head == unit.head) std::fill(row, row + slots, 0.0f);
    const float share = inverse / static_cast<float>(unit_heads_);
    kernels_.add_scaled(block.scores + r * block.score_stride + block.begin, share,
                        block.end - block.begin, row + block.begin);
  }

  const Call& call_;
  const SlotKind& kind_;
  const FamilyKernels& kernels_;
  const Outputs& outputs_;
  const Layout layout_;
  const int64_t unit_heads_;
  float* const thread_scratch_;
  float* const heads_;
  const int64_t heads_floats_;
  Wave wave_;
};

}  // namespace

int64_t KeySlots::SlotsBegin(int64_t sequence, int64_t query) const {
  return MaskReader(call_, sequence, 0).KeysBegin(query);
}

int64_t KeySlots::SlotsEnd(int64_t sequence, int64_t query) const {
  return MaskReader(call_, sequence, 0).KeysEnd(query);
}

bool KeySlots::Bias(int64_t sequence, int64_t head, int64_t query, float* bias) const {
  const Mask& mask = call_.mask;
  if (!mask.tensor.present() && mask.keys.dim(0) == 0 && mask.alibi_slopes.empty()) return false;
  const MaskReader reader(call_, sequence, head);
  const int64_t begin = reader.KeysBegin(query);
  reader.BiasRow(query, begin, std::max<int64_t>(reader.KeysEnd(query) - begin, 0), bias + begin);
  return true;
}

void LoadQueryRows(const FamilyKernels& kernels, const Call& call, const QueryBlock& block,
                   float* rows) {
  for (int64_t r = 0; r < block.rows; ++r) {
    kernels.load_row(
        call.query.at(call.queries, call.dtype, block.sequence, block.head, block.query + r),
        call.dtype == DType::kBf16, call.query.dim, rows + r * call.query.dim);
  }
}

void LoadKeyRows(const FamilyKernels& kernels, const Call& call, const InputRows& operand,
                 int64_t sequence, int64_t head, int64_t begin, int64_t count, float* rows) {
  const TensorView<const uint8_t, 1>& mask = call.mask.keys;
  for (int64_t i = 0; i < count; ++i) {
    float* row = rows + i * operand.dim;
    const int64_t key = begin + i;
    if (mask.dim(0) != 0 && mask.data()[call.keys.start(sequence) + key] == 0) {
      std::fill(row, row + operand.dim, 0.0f);
    } else {
      kernels.load_row(operand.at(call.keys, call.dtype, sequence, head, key),
                       call.dtype == DType::kBf16, operand.dim, row);
    }
  }
}

void ScoreDots(const FamilyKernels& kernels, const float* queries, int64_t dim,
               const QueryBlock& block) {
  for (int64_t slot = block.begin; slot < block.end; slot += kSlotBlock) {
    kernels.product({.a = queries,
                     .a_row_stride = dim,
                     .b = block.panel + slot * dim,
                     .b_row_stride = kSlotBlock,
                     .c = block.scores + slot,
                     .c_row_stride = block.score_stride,
                     .m = block.rows,
                     .n = std::min(kSlotBlock, block.end - slot),
                     .k = dim});
  }
}

absl::Status MeasureSlots(const Call& call, const SlotKind& kind, int threads, Cost& cost) {
  const int64_t unit_heads = Averaged(call) ? call.query.heads : 1;
  const int64_t slots = kind.max_slots() + kSlotBlock;
  // All that is added up below stays under a small multiple of these.
  for (const absl::StatusOr<int64_t>& product :
       {CheckedProduct("scratch of heads, keys and units",
                       {unit_heads, slots, kind.score_dim() + call.value.dim + 1}),
        CheckedProduct(
            "scratch of threads, queries and keys",
            {threads, kQueryBlock + 1, slots + kind.scratch_floats() + call.value.dim})}) {
    if (!product.ok()) return product.status();
  }
  const Layout layout(call, kind);
  const int64_t largest = unit_heads * layout.Head(kind.max_slots());
  int64_t total = 0;
  // Of empty sequences there may be 2^48.
  for (int64_t i = 0; largest > 0 && i < call.queries.batch() && total < Wave::kFloats; ++i) {
    total += call.query.heads * layout.Head(kind.Slots(i));
  }
  const int64_t wave = std::max(largest, std::min(total, Wave::kFloats));
  cost.scratch_bytes = (threads * layout.thread_total + wave) * static_cast<int64_t>(sizeof(float));
  return absl::OkStatus();
}

void RunSlots(const Call& call, const SlotKind& kind, const FamilyKernels& kernels,
              ThreadPool& pool, std::span<std::byte> scratch, const Outputs& outputs) {
  Runner(call, kind, kernels, pool.threads(), scratch, outputs).Run(pool);
}

}  // namespace attendant::attention
