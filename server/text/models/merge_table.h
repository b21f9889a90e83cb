// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/text/base/slot_hash.h"

namespace attendant {

struct Merge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

// A map from pairs of ids to the rank of their merge. Immutable, thread-safe.
class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `merges` are in the order of their ranks. A pair that occurs twice has the last rank. REQUIRES:
  // fewer than 2^31 merges, ids >= 0.
  explicit MergeTable(const std::vector<Merge>& merges);

  // The rank of the merge, or kNone.
  uint32_t Find(int32_t left, int32_t right) const {
    const uint64_t key = Key(left, right);
    for (size_t slot = first_slot_(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].rank == kNone || slots_[slot].key == key) return slots_[slot].rank;
    }
  }
  // The token that a merge makes, and whether it is the left or the right part of another merge.
  struct Merged {
    int32_t id = 0;
    bool is_left = false;
    bool is_right = false;
  };
  const Merged& merged(uint32_t rank) const { return merged_[rank]; }
  size_t size() const { return merged_.size(); }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t rank = kNone;  // free
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  std::vector<Slot> slots_;  // a power of two, at most a quarter of it in use: most pairs have none
  size_t mask_;              // slots_.size() - 1
  SlotHash first_slot_;
  std::vector<Merged> merged_;  // by rank
};

}  // namespace attendant
