// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/merge_table.h"

namespace attendant {

MergeTable::MergeTable(const std::vector<Merge>& merges) {
  int bits = 1;
  while (size_t{1} << bits < 2 * merges.size()) ++bits;
  slots_.resize(size_t{1} << bits);
  shift_ = 64 - bits;
  merged_.reserve(merges.size());
  for (const Merge& merge : merges) {
    const uint64_t key = Key(merge.left, merge.right);
    size_t slot = FirstSlot(key);
    while (slots_[slot].rank != kNone && slots_[slot].key != key) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    slots_[slot] = {key, static_cast<uint32_t>(merged_.size())};
    merged_.push_back(merge.merged);
  }
}

}  // namespace attendant
