// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/scored/scored_kernels.h"

// Attention of the kinds whose scores are not plain dot products. For each head: softmax over the
// scores of some keys, and the sum of the values of these keys. The keys are those of the call, or
// (Linformer) what those were projected to. Scores exist for a block of queries at a time: memory
// grows with the lengths, not with their product.
namespace attendant::attention {

inline constexpr int64_t kKeyBlock = 64;  // keys that are prepared in one piece
inline constexpr int64_t kQueryBlock =
    12;  // queries of a task; a multiple of the rows of all tiles

// Keys [begin, begin + count) of one sequence and head.
struct KeyRange {
  int64_t sequence = 0, head = 0;
  int64_t begin = 0, count = 0;
};

// Some keys of one head, to be prepared.
struct ScoredKeys {
  KeyRange range;
  float* panel = nullptr;         // [score_dim, kKeyBlock]; columns from `count` on are never used
  float* values = nullptr;        // [count, value dim]
  uint8_t* block_flag = nullptr;  // for the model to remember something about the block
  float* scratch = nullptr;       // [scratch_floats]
};

// Some queries of one head, to be scored with the keys [begin, end). `begin` is a multiple of
// kKeyBlock; scores up to the next multiple after `end` may be written.
struct QueryBlock {
  int64_t sequence = 0, head = 0;
  int64_t query = 0, rows = 0;
  int64_t begin = 0, end = 0;
  const float* panel = nullptr;          // [blocks, score_dim, kKeyBlock]
  const uint8_t* block_flags = nullptr;  // [blocks]
  float* scores = nullptr;               // [rows, keys], row stride score_stride
  int64_t score_stride = 0;
  float* scratch = nullptr;  // [scratch_floats]
};

// The score function of a kind of attention: prepares keys and scores them. Several threads call
// the methods at once.
class ScoreModel {
 public:
  virtual ~ScoreModel() = default;

  virtual int64_t score_dim() const = 0;             // rows of a panel
  virtual int64_t scratch_floats() const = 0;        // of one thread, for the two below
  virtual int64_t Keys(int64_t sequence) const = 0;  // of a sequence
  virtual int64_t max_keys() const = 0;              // of the longest
  virtual void Prepare(const ScoredKeys& block) const = 0;
  virtual void Score(const QueryBlock& block) const = 0;
  // False: the scores are weights already, and are divided by their sum only.
  virtual bool softmax() const { return true; }

  // The keys that a query may see at most, [begin, end), both rising with the query; and what is
  // added to its scores, in bias[begin .. end), or false where that is nothing.
  virtual int64_t KeysBegin(int64_t sequence, int64_t query) const = 0;
  virtual int64_t KeysEnd(int64_t sequence, int64_t query) const = 0;
  virtual bool Bias(int64_t sequence, int64_t head, int64_t query, float* bias) const = 0;
};

// The base of models that score the keys of the call itself, with all masks.
class CallKeysModel : public ScoreModel {
 public:
  explicit CallKeysModel(const Call& call) : call_(call) {}

  int64_t Keys(int64_t sequence) const final { return call_.keys.len(sequence); }
  int64_t max_keys() const final { return call_.keys.max_len(); }
  int64_t KeysBegin(int64_t sequence, int64_t query) const final;
  int64_t KeysEnd(int64_t sequence, int64_t query) const final;
  bool Bias(int64_t sequence, int64_t head, int64_t query, float* bias) const final;

 protected:
  const Call& call_;
};

// Rows of the call's operands, f32 or bf16, as f32 rows side by side. Rows of keys and values that
// the key mask leaves out become zeros: they may hold anything.
void LoadQueryRows(const ScoredKernels& kernels, const Call& call, const QueryBlock& block,
                   float* rows);
void LoadKeyRows(const ScoredKernels& kernels, const Call& call, const InputRows& operand,
                 const KeyRange& range, float* rows);

// Scores that are dot products: queries [rows, dim] with the block's panels of `dim` rows.
void ScoreDots(const ScoredKernels& kernels, const float* queries, int64_t dim,
               const QueryBlock& block);

// c = a b as `args` says, for weights a [rows, keys] and values b [keys, dim]. With `finite` false
// some values are infinite or NaN, and a weight of 0 leaves its value out: 0 times it is NaN. Rows
// that leave them all out have the same bits either way. `row` [dim] is scratch.
void SumWeightedValues(const ScoredKernels& kernels, const StridedMatmulArgs& args, bool finite,
                       float* row);

// Adds the scratch to `cost`; INVALID_ARGUMENT where it overflows. REQUIRES: CheckCall accepted the
// call, whose heads are `query`'s.
absl::Status MeasureScored(const Call& call, const ScoreModel& model, int threads, Cost& cost);

// Adds to cost.operations what masks and weights take, with `seen` pairs of queries and keys in
// each head.
void AddScoredOverheads(const Call& call, int64_t seen, Cost& cost);

// out = softmax(scores + bias) values for every head and query of the call, and the weights
// where the call asks for them: [.., queries, keys].
void RunScored(const Call& call, const ScoreModel& model, const ScoredKernels& kernels,
               ThreadPool& pool, std::span<std::byte> scratch, const Outputs& outputs);

}  // namespace attendant::attention
