// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/merge_table.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/bits.h"

namespace attendant {

MergeTable::MergeTable(const std::vector<Merge>& merges)
    : slots_(absl::bit_ceil(std::max<size_t>(4 * merges.size(), 2))),
      mask_(slots_.size() - 1),
      first_slot_(absl::countr_zero(slots_.size())) {
  merged_.reserve(merges.size());
  absl::flat_hash_set<int32_t> lefts, rights;
  for (const Merge& merge : merges) {
    const uint64_t key = Key(merge.left, merge.right);
    size_t slot = first_slot_(key);
    while (slots_[slot].rank != kNone && slots_[slot].key != key) {
      slot = (slot + 1) & mask_;
    }
    slots_[slot] = {key, static_cast<uint32_t>(merged_.size())};
    merged_.push_back({.id = merge.merged});
    lefts.insert(merge.left);
    rights.insert(merge.right);
  }
  for (Merged& merged : merged_) {
    merged.is_left = lefts.contains(merged.id);
    merged.is_right = rights.contains(merged.id);
  }
}

}  // namespace attendant
