// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/last_rows.h"

#include <cstring>

namespace attendant::cpu {
namespace {

void Move(std::byte* rows, int64_t row_bytes, int64_t from, int64_t to, int64_t count) {
  if (from == to) return;
  std::memmove(rows + to * row_bytes, rows + from * row_bytes,
               static_cast<size_t>(count * row_bytes));
}

}  // namespace

LastRows::LastRows(const PackedBatch& batch, const OutputSpec& spec, int64_t begin, int64_t end)
    : batch_(batch), spec_(spec), begin_(begin), end_(end) {
  for (int64_t i = begin; i < end; ++i) count_ += of(i).size();
}

LastRows::Range LastRows::of(int64_t sequence) const {
  const auto i = static_cast<size_t>(sequence);
  const SequenceOutputs& outputs = spec_.sequences[i];
  const Range all{0, batch_.len(sequence)};
  const bool layers = !spec_.layers.empty() && (!spec_.layers[i].attention_layers.empty() ||
                                                !spec_.layers[i].hidden_layers.empty());
  if (outputs.last_hidden_state || layers) return all;
  switch (outputs.pooling) {
    case Pooling::kNone:
      return {};
    case Pooling::kCls:
      return {0, 1};
    case Pooling::kLast:
      return {all.end - 1, all.end};
    case Pooling::kMean:
    case Pooling::kMax:
    case Pooling::kMeanSqrtLen:
    case Pooling::kWeightedMean:
      break;
  }
  return all;
}

// From the first sequence to the last: no row moves down.
void LastRows::MoveToFront(std::byte* rows, int64_t row_bytes) const {
  int64_t front = 0;
  for (int64_t i = begin_; i < end_; ++i) {
    const Range range = of(i);
    const int64_t first = batch_.seq_start(i) - batch_.seq_start(begin_) + range.begin;
    Move(rows, row_bytes, first, front, range.size());
    front += range.size();
  }
}

// From the last sequence to the first: no row moves up.
void LastRows::MoveBack(std::byte* rows, int64_t row_bytes) const {
  int64_t front = count_;
  for (int64_t i = end_; i-- > begin_;) {
    const Range range = of(i);
    const int64_t first = batch_.seq_start(i) - batch_.seq_start(begin_) + range.begin;
    front -= range.size();
    Move(rows, row_bytes, front, first, range.size());
  }
}

}  // namespace attendant::cpu
