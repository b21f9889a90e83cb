// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/sequences.h"

#include <algorithm>

namespace attendant::attention {

Sequences Sequences::Dense(int64_t batch, int64_t seq) {
  Sequences sequences;
  sequences.batch_ = batch;
  sequences.seq_ = sequences.max_len_ = seq;
  return sequences;
}

Sequences Sequences::Packed(std::span<const int64_t> starts) {
  Sequences sequences;
  sequences.packed_ = true;
  sequences.batch_ = static_cast<int64_t>(starts.size()) - 1;
  sequences.starts_ = starts;
  for (size_t i = 1; i < starts.size(); ++i) {
    // Starts may be a client's and unchecked: what overflows wraps, and is refused by
    // CheckSequences.
    const auto len = static_cast<int64_t>(static_cast<uint64_t>(starts[i]) -
                                          static_cast<uint64_t>(starts[i - 1]));
    sequences.max_len_ = std::max(sequences.max_len_, len);
  }
  return sequences;
}

bool SameLengths(const Sequences& a, const Sequences& b) {
  if (a.batch() != b.batch()) return false;
  if (!a.packed() && !b.packed()) return a.seq() == b.seq();
  for (int64_t i = 0; i < a.batch(); ++i) {
    if (a.len(i) != b.len(i)) return false;
  }
  return true;
}

}  // namespace attendant::attention
