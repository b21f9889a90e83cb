// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/layer_runner.h"

#include <gtest/gtest.h>

namespace attendant::cpu {
namespace {

TEST(BlockRowsTest, SharesRowsEquallyAndKeepsTheGranularity) {
  EXPECT_EQ(ChooseBlockRows(1, 128, 2), 16);
  EXPECT_EQ(ChooseBlockRows(96, 128, 2), 48);
  EXPECT_EQ(ChooseBlockRows(256, 128, 2), 128);
  EXPECT_EQ(ChooseBlockRows(257, 128, 2), 80);
  for (int64_t tokens = 1; tokens < 3000; tokens += 7) {
    for (int threads : {1, 2, 3, 8}) {
      const int64_t rows = ChooseBlockRows(tokens, 128, threads);
      EXPECT_EQ(rows % kRowGranularity, 0);
      EXPECT_GE(rows, kRowGranularity);
      EXPECT_LE(rows, 128);
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
