// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/block_linears.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace attendant::cpu {
namespace {

std::vector<int64_t> RowsOfBlocks(int64_t tokens, int64_t max_rows, int threads) {
  const RowBlocks blocks(tokens, max_rows, threads);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < blocks.count(); ++i)
    rows.push_back(blocks.begin(i + 1) - blocks.begin(i));
  return rows;
}

TEST(RowBlocksTest, ShareRowsEqually) {
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(RowsOfBlocks(1, 128, 2), Rows({1}));
  EXPECT_EQ(RowsOfBlocks(96, 128, 2), Rows({48, 48}));
  EXPECT_EQ(RowsOfBlocks(256, 128, 2), Rows({128, 128}));
  EXPECT_EQ(RowsOfBlocks(257, 128, 2), Rows({64, 64, 64, 65}));
  EXPECT_EQ(RowsOfBlocks(530, 128, 1), Rows({112, 112, 96, 112, 98}));
}

TEST(RowBlocksTest, EndWithSmallOnes) {
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(RowsOfBlocks(512, 128, 2), Rows({128, 128, 64, 64, 32, 32, 32, 32}));
  EXPECT_EQ(RowsOfBlocks(384, 128, 2), Rows({96, 96, 48, 48, 32, 16, 32, 16}));
  EXPECT_EQ(RowsOfBlocks(383, 128, 2), Rows({96, 96, 96, 95})) << "quarters would be too small";
  EXPECT_EQ(RowsOfBlocks(1024, 128, 8), Rows(8, 128)) << "each thread has one only";
  EXPECT_EQ(RowsOfBlocks(256, 128, 1), Rows({128, 128})) << "it waits for no other";
}

TEST(RowBlocksTest, CoverAllRowsAndKeepTheGranularity) {
  for (int64_t tokens = 1; tokens < 3000; tokens += 7) {
    for (int threads : {1, 2, 3, 8}) {
      for (int64_t max_rows : {16, 128}) {
        SCOPED_TRACE(testing::Message() << tokens << " rows, " << threads << " threads");
        const RowBlocks blocks(tokens, max_rows, threads);
        const std::vector<int64_t> rows = RowsOfBlocks(tokens, max_rows, threads);
        ASSERT_EQ(blocks.begin(0), 0);
        ASSERT_EQ(blocks.begin(blocks.count()), tokens);
        for (int64_t i = 0; i < blocks.count(); ++i)
          EXPECT_EQ(blocks.begin(i) % kRowGranularity, 0);
        const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
        EXPECT_GE(*least, 1);
        EXPECT_LE(*most, max_rows);
        const bool cut = threads > 1 && max_rows == 128 && tokens >= 2 * 96 * threads;
        if (!cut) {
          EXPECT_LT(*most - *least, 2 * kRowGranularity);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
