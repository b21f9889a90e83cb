// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace attendant {

// The first slot of a key in a table of 2^bits slots: the top bits of the key times an odd factor.
// The factor is drawn at random once in each process, so a file cannot choose keys that share a
// slot: any two do with a probability of at most 2 / 2^bits (Dietzfelbinger, Hagerup, Katajainen
// and Penttonen: A reliable randomized algorithm for the closest-pair problem, 1997). Thread-safe.
class SlotHash {
 public:
  // REQUIRES: 1 <= bits <= 63.
  explicit SlotHash(int bits) : factor_(ProcessFactor()), shift_(64 - bits) {}

  size_t operator()(uint64_t key) const { return static_cast<size_t>(key * factor_ >> shift_); }

 private:
  static uint64_t ProcessFactor();

  uint64_t factor_;
  int shift_;
};

}  // namespace attendant
