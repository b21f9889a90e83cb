// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/sequences.h"

#include <algorithm>

namespace attendant::attention {

Sequences Sequences::Dense(int64_t batch, int64_t seq) {
  Sequences sequences;
  sequences.batch_ = batch;
  sequences.seq_ = seq;
  return sequences;
}

Sequences Sequences::Packed(std::span<const int64_t> starts) {
  Sequences sequences;
  sequences.packed_ = true;
  sequences.batch_ = static_cast<int64_t>(starts.size()) - 1;
  sequences.starts_ = starts;
  return sequences;
}

int64_t Sequences::max_len() const {
  if (!packed_) return seq_;
  int64_t longest = 0;
  for (int64_t i = 0; i < batch_; ++i) longest = std::max(longest, len(i));
  return longest;
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
