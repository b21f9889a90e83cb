// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/core/base/int_math.h"

namespace attendant::cpu {
namespace {

// Below this many scores a piece costs more to hand out than to compute: it takes several heads.
constexpr int64_t kMinPieceScores = 4096;

// How the pieces of a sequence are shaped: all equally high, but for the last.
struct Cut {
  Cut(const AttentionPlan::Lens& lens, const AttentionPlan::Options& options)
      : queries(lens.queries == 0
                    ? 1
                    : CeilDivide(lens.queries, CeilDivide(lens.queries, options.most_queries))),
        heads(std::clamp<int64_t>(kMinPieceScores / std::max<int64_t>(1, queries * lens.keys), 1,
                                  options.heads)),
        columns(CeilDivide(options.heads, heads)),
        pieces(CeilDivide(lens.queries, queries) * columns) {}

  int64_t queries, heads;  // of a piece
  int64_t columns;         // pieces of the same queries
  int64_t pieces;
};

}  // namespace

void AttentionPlan::Fill(int64_t batch, const Options& options,
                         absl::FunctionRef<Lens(int64_t)> lens) {
  batch_ = batch;
  options_ = options;
  int64_t scores = 0;
  for (int64_t i = 0; i < batch; ++i) {
    const Lens of_i = lens(i);
    const Cut cut(of_i, options);
    // Counted by its pieces until the sequences are in order.
    sequences_[i] = {.lens = of_i,
                     .index = i,
                     .scores_before = scores,
                     .piece_scores = cut.heads * cut.queries * of_i.keys,
                     .first_piece = cut.pieces};
    scores += of_i.queries * of_i.keys;
  }
  std::sort(sequences_, sequences_ + batch, [](const Sequence& a, const Sequence& b) {
    return a.piece_scores != b.piece_scores ? a.piece_scores > b.piece_scores : a.index < b.index;
  });
  int64_t pieces = 0;
  for (int64_t i = 0; i < batch; ++i) {
    pieces += std::exchange(sequences_[i].first_piece, pieces);
  }
  sequences_[batch].first_piece = pieces;
}

AttentionPiece AttentionPlan::operator[](int64_t index) const {
  const Sequence& sequence =
      *(std::upper_bound(sequences_, sequences_ + batch_ + 1, index,
                         [](int64_t piece, const Sequence& s) { return piece < s.first_piece; }) -
        1);
  const Cut cut(sequence.lens, options_);
  // The smaller pieces of a sequence, those of its last queries, come last.
  const int64_t head = (index - sequence.first_piece) % cut.columns * cut.heads;
  const int64_t query = (index - sequence.first_piece) / cut.columns * cut.queries;
  const int64_t first = sequence.lens.first_query;
  return {.sequence = sequence.index,
          .keys = sequence.lens.keys,
          .scores_before = sequence.scores_before,
          .head_begin = head,
          .head_end = std::min(head + cut.heads, options_.heads),
          .query_begin = first + query,
          .query_end = first + std::min(query + cut.queries, sequence.lens.queries)};
}

}  // namespace attendant::cpu
