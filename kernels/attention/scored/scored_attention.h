// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/scored/scored_kernels.h"

// What the kinds whose scores are not plain dot products share: for each head, softmax over scores
// of some slots (keys, or what keys were projected to), and the sum of the slots' values. Scores
// exist for a block of queries at a time; memory grows with the lengths, not with their product.
namespace attendant::attention {

inline constexpr int64_t kSlotBlock = 64;   // slots that are prepared in one piece
inline constexpr int64_t kQueryBlock = 12;  // queries of a task; a multiple of all tiles' rows

// Some slots of one head, to be prepared.
struct SlotBlock {
  int64_t sequence = 0, head = 0;
  int64_t begin = 0, count = 0;  // slots of the sequence
  float* panel = nullptr;        // [score_dim, kSlotBlock]; columns from `count` on are never used
  float* values = nullptr;       // [count, value dim]
  float* mark = nullptr;         // for the kind to remember something about the block
  float* scratch = nullptr;      // [scratch_floats]
};

// Some queries of one head, to be scored with the slots [begin, end). `begin` is a multiple of
// kSlotBlock; scores up to the next multiple after `end` may be written.
struct QueryBlock {
  int64_t sequence = 0, head = 0;
  int64_t query = 0, rows = 0;
  int64_t begin = 0, end = 0;
  const float* panel = nullptr;  // [blocks, score_dim, kSlotBlock]
  const float* marks = nullptr;  // [blocks]
  float* scores = nullptr;       // [rows, slots], row stride score_stride
  int64_t score_stride = 0;
  float* scratch = nullptr;  // [scratch_floats]
};

// A kind: how slots are prepared and scored. Methods are called by several threads at once.
class SlotKind {
 public:
  virtual ~SlotKind() = default;

  virtual int64_t score_dim() const = 0;              // rows of a panel
  virtual int64_t scratch_floats() const = 0;         // of one thread, for the two below
  virtual int64_t Slots(int64_t sequence) const = 0;  // of a sequence
  virtual int64_t max_slots() const = 0;              // of the longest
  virtual void Prepare(const SlotBlock& block) const = 0;
  virtual void Score(const QueryBlock& block) const = 0;
  // False: scores are weights already, only their sum is wanting.
  virtual bool softmax() const { return true; }

  // The slots that a query may see at most, [begin, end), both rising with the query; and what is
  // added to its scores, in bias[begin .. end), or false where that is nothing.
  virtual int64_t SlotsBegin(int64_t sequence, int64_t query) const = 0;
  virtual int64_t SlotsEnd(int64_t sequence, int64_t query) const = 0;
  virtual bool Bias(int64_t sequence, int64_t head, int64_t query, float* bias) const = 0;
};

// A kind whose slots are the call's keys, all masks included.
class KeySlots : public SlotKind {
 public:
  explicit KeySlots(const Call& call) : call_(call) {}

  int64_t Slots(int64_t sequence) const final { return call_.keys.len(sequence); }
  int64_t max_slots() const final { return call_.keys.max_len(); }
  int64_t SlotsBegin(int64_t sequence, int64_t query) const final;
  int64_t SlotsEnd(int64_t sequence, int64_t query) const final;
  bool Bias(int64_t sequence, int64_t head, int64_t query, float* bias) const final;

 protected:
  const Call& call_;
};

// Rows of the call's operands, f32 or bf16, as f32 rows side by side. Rows of keys and values that
// the key mask leaves out become zeros: they may hold anything.
void LoadQueryRows(const FamilyKernels& kernels, const Call& call, const QueryBlock& block,
                   float* rows);
void LoadKeyRows(const FamilyKernels& kernels, const Call& call, const InputRows& operand,
                 int64_t sequence, int64_t head, int64_t begin, int64_t count, float* rows);

// Scores that are dot products: queries [rows, dim] with the block's panels of `dim` rows.
void ScoreDots(const FamilyKernels& kernels, const float* queries, int64_t dim,
               const QueryBlock& block);

// Adds the scratch to `cost`; INVALID_ARGUMENT where it overflows. REQUIRES: CheckCall accepted the
// call, whose heads are `query`'s.
absl::Status MeasureSlots(const Call& call, const SlotKind& kind, int threads, Cost& cost);

// out = softmax(scores + bias) values for every head and query of the call, and the weights
// where they are wanted: [.., queries, slots].
void RunSlots(const Call& call, const SlotKind& kind, const FamilyKernels& kernels,
              ThreadPool& pool, std::span<std::byte> scratch, const Outputs& outputs);

}  // namespace attendant::attention
