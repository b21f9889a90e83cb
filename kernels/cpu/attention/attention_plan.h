// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace attendant::cpu {

// A part of the attention of a batch that one thread computes alone: some heads of one sequence,
// some of its queries, all of its keys.
struct AttentionPiece {
  int64_t sequence = 0;       // its place in the batch
  int64_t keys = 0;           // of the sequence
  int64_t scores_before = 0;  // of one head, in all sequences before this one in the batch
  int64_t head_begin = 0, head_end = 0;
  int64_t query_begin = 0, query_end = 0;  // in the sequence

  int64_t scores() const { return (head_end - head_begin) * (query_end - query_begin) * keys; }
};

// Cuts the attention of a batch into pieces. The sequences with the largest pieces come first. How
// a sequence is cut depends on that sequence alone. Allocates nothing.
class AttentionPlan {
 public:
  struct Lens {
    int64_t queries, keys;
    int64_t first_query = 0;  // queries before it are left out
  };
  struct Sequence {
    Lens lens;
    int64_t index;          // its place in the batch
    int64_t scores_before;  // as AttentionPiece's
    int64_t piece_scores;   // of its largest piece
    int64_t first_piece;    // the number of its first piece
  };
  struct Options {
    int64_t heads = 0;
    int64_t most_queries = 0;  // of a piece
  };

  AttentionPlan() = default;
  // `sequences` has room for one more sequence than the largest batch.
  explicit AttentionPlan(Sequence* sequences) : sequences_(sequences) {}

  // Plans a batch, in place of the one before. `lens` gives the lengths of a sequence.
  void Fill(int64_t batch, const Options& options, absl::FunctionRef<Lens(int64_t)> lens);

  // The number of pieces, and piece `index`. REQUIRES: Fill.
  int64_t size() const { return sequences_[batch_].first_piece; }
  AttentionPiece operator[](int64_t index) const;

 private:
  Sequence* sequences_ = nullptr;  // [batch + 1], those with the largest pieces first; then the end
  int64_t batch_ = 0;
  Options options_;
};

}  // namespace attendant::cpu
