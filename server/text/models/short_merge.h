// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "server/text/models/merge_table.h"

namespace attendant {

inline constexpr size_t kMaxShortSymbols = 64;

// Merges the pair of neighbours of the lowest rank, of several the leftmost, until no pair has a
// merge. `ids` are the symbols' ids; where a merged symbol begins is its id then. Returns where
// symbols begin then, as bits. A search over all pairs for each merge is faster than a heap where
// they are so few. REQUIRES: at most kMaxShortSymbols ids; merges.size() <= kMaxShortMerges.
inline constexpr size_t kMaxShortMerges = size_t{1} << 25;
uint64_t MergeShort(const MergeTable& merges, absl::Span<int32_t> ids);

}  // namespace attendant
