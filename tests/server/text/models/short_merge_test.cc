// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/short_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int32_t> Merged(const std::vector<Merge>& merges, std::vector<int32_t> ids) {
  const uint64_t begins = MergeShort(MergeTable(merges), absl::MakeSpan(ids));
  std::vector<int32_t> left;
  for (size_t i = 0; i < ids.size(); ++i) {
    if ((begins >> i & 1) != 0) left.push_back(ids[i]);
  }
  EXPECT_EQ(ids.size() == 64 ? 0 : begins >> ids.size(), 0u);
  return left;
}

// The definition, word for word.
std::vector<int32_t> MergedSlowly(const std::vector<Merge>& merges, std::vector<int32_t> ids) {
  const MergeTable table(merges);
  while (true) {
    uint32_t best = MergeTable::kNone;
    size_t place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const uint32_t rank = table.Find(ids[i], ids[i + 1]);
      if (rank < best) best = rank, place = i;
    }
    if (best == MergeTable::kNone) return ids;
    ids[place] = table.merged(best).id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(MergeShortTest, MergesTheLowestRankThenTheLeftmost) {
  const std::vector<Merge> merges = {{1, 1, 11}, {11, 2, 112}, {2, 3, 23}, {112, 3, 1123}};
  EXPECT_THAT(Merged(merges, {1, 1, 2}), ElementsAre(112));
  EXPECT_THAT(Merged(merges, {1, 1, 1}), ElementsAre(11, 1));
  EXPECT_THAT(Merged(merges, {1, 1, 2, 3}), ElementsAre(1123));
  EXPECT_THAT(Merged(merges, {1, 2, 3}), ElementsAre(1, 23));
  EXPECT_THAT(Merged(merges, {3}), ElementsAre(3));
  EXPECT_THAT(Merged(merges, {}), IsEmpty());
  EXPECT_THAT(Merged({}, {1, 2}), ElementsAre(1, 2));
}

TEST(MergeShortTest, IsTheDefinition) {
  std::mt19937 random(7);
  const auto below = [&](size_t limit) { return static_cast<int32_t>(random() % limit); };
  for (int round = 0; round < 300; ++round) {
    constexpr int32_t kCharacters = 3;
    std::vector<Merge> merges;
    for (int32_t id = kCharacters; id < kCharacters + 40; ++id) {
      merges.push_back({below(static_cast<size_t>(id)), below(static_cast<size_t>(id)), id});
    }
    // Ranks in another order than that of the tokens.
    if (round % 2 == 1) std::shuffle(merges.begin(), merges.end(), random);
    for (size_t size = 1; size <= kMaxShortSymbols; ++size) {
      std::vector<int32_t> ids(size);
      for (int32_t& id : ids) id = below(kCharacters);
      ASSERT_EQ(Merged(merges, ids), MergedSlowly(merges, ids)) << round << " " << size;
    }
  }
}

}  // namespace
}  // namespace attendant
