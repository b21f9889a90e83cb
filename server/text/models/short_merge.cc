// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/short_merge.h"

#include <algorithm>
#include <array>
#include <limits>

namespace attendant {
namespace {

constexpr int32_t kNoPair = std::numeric_limits<int32_t>::max();
constexpr int kPlaceBits = 6;
constexpr size_t kLanes = 8;

using Pairs = std::array<int32_t, kMaxShortSymbols>;

uint64_t Bit(size_t place) { return uint64_t{1} << place; }
uint64_t UpTo(size_t place) { return Bit(place) | (Bit(place) - 1); }
size_t FirstBit(uint64_t bits) { return static_cast<size_t>(__builtin_ctzll(bits)); }
size_t LastBit(uint64_t bits) { return 63 - static_cast<size_t>(__builtin_clzll(bits)); }

// rank << kPlaceBits | place: the smallest pair is the next to merge.
int32_t FindPair(const MergeTable& merges, int32_t left, int32_t right, size_t place) {
  const uint32_t rank = merges.Find(left, right);
  return rank == MergeTable::kNone ? kNoPair
                                   : static_cast<int32_t>(rank << kPlaceBits | uint32_t(place));
}

// Of the first `size`, a multiple of kLanes.
int32_t Smallest(const Pairs& pairs, size_t size) {
  std::array<int32_t, kLanes> least;
  std::copy_n(pairs.begin(), kLanes, least.begin());
  for (size_t i = kLanes; i < size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      least[lane] = std::min(least[lane], pairs[i + lane]);
    }
  }
  return *std::min_element(least.begin(), least.end());
}

}  // namespace

uint64_t MergeShort(const MergeTable& merges, absl::Span<int32_t> ids) {
  if (ids.empty()) return 0;
  const size_t size = (ids.size() + kLanes - 1) / kLanes * kLanes;
  Pairs pairs;
  for (size_t i = 0; i + 1 < ids.size(); ++i) pairs[i] = FindPair(merges, ids[i], ids[i + 1], i);
  std::fill(pairs.begin() + ids.size() - 1, pairs.begin() + size, kNoPair);
  uint64_t begins = UpTo(ids.size() - 1);
  uint64_t lefts = begins;   // symbols that may be the left one of a pair
  uint64_t rights = begins;  // ... and the right one
  for (int32_t pair = Smallest(pairs, size); pair != kNoPair; pair = Smallest(pairs, size)) {
    const auto left = static_cast<size_t>(pair) % kMaxShortSymbols;
    const MergeTable::Merged& merged = merges.merged(static_cast<uint32_t>(pair) >> kPlaceBits);
    ids[left] = merged.id;
    const uint64_t after = begins & ~UpTo(left);
    const uint64_t gone = after & -after;  // the right symbol
    begins &= ~gone;
    pairs[FirstBit(gone)] = kNoPair;
    lefts = merged.is_left ? lefts | Bit(left) : lefts & ~Bit(left);
    rights = merged.is_right ? rights | Bit(left) : rights & ~Bit(left);

    const uint64_t next = after & ~gone;
    const bool has_next = merged.is_left && (rights & next & -next) != 0;
    pairs[left] = has_next ? FindPair(merges, merged.id, ids[FirstBit(next)], left) : kNoPair;
    const uint64_t before = begins & (UpTo(left) >> 1);
    if (before == 0) continue;
    const size_t previous = LastBit(before);
    const bool has_previous = merged.is_right && (lefts & Bit(previous)) != 0;
    pairs[previous] = has_previous ? FindPair(merges, ids[previous], merged.id, previous) : kNoPair;
  }
  return begins;
}

}  // namespace attendant
