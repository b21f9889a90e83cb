// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/heads/top_entries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace attendant::cpu {
namespace {

TEST(TopEntriesTest, WhatIsNotANumberIsSmallest) {
  std::vector<float> values(1000, std::numeric_limits<float>::quiet_NaN());
  values[700] = -5;
  std::vector<Entry> entries;
  FillEntries(values, entries);
  KeepLargest(3, entries);
  std::sort(entries.begin(), entries.end(), Larger);
  ASSERT_EQ(entries.size(), 3);
  EXPECT_EQ(entries[0].index, 700);
  EXPECT_EQ(entries[0].value, -5);
  EXPECT_EQ(entries[1].index, 0);
  EXPECT_EQ(entries[2].index, 1);
}

}  // namespace
}  // namespace attendant::cpu
