// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/slot_hash.h"

#include <gtest/gtest.h>

#include <set>

namespace attendant {
namespace {

TEST(SlotHashTest, StaysWithinTheTable) {
  for (const int bits : {1, 4, 31, 63}) {
    const SlotHash slot_hash(bits);
    for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
      EXPECT_LT(slot_hash(key), size_t{1} << bits) << key;
      EXPECT_EQ(slot_hash(key), SlotHash(bits)(key)) << "another table of the same process";
    }
  }
}

// The golden ratio, the factor that everybody knows, would put all of these keys into slot 0. Two
// of 256 share a slot of 2^32 in one of 60,000 runs.
TEST(SlotHashTest, KeysChosenForAKnownFactorDoNotCollide) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  uint64_t inverse = 1;  // Newton's iteration doubles the bits that are right
  for (int i = 0; i < 6; ++i) inverse *= 2 - kGoldenRatio * inverse;
  ASSERT_EQ(inverse * kGoldenRatio, 1u);
  const SlotHash slot_hash(32);
  std::set<size_t> slots;
  for (uint64_t i = 0; i < 256; ++i) slots.insert(slot_hash(i * inverse));
  EXPECT_EQ(slots.size(), 256u);
}

}  // namespace
}  // namespace attendant
