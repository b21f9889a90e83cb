// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/sequences.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace attendant::attention {
namespace {

TEST(SameLengthsTest, ComparesEachSequence) {
  const std::vector<int64_t> starts = {0, 2, 5}, same = {0, 2, 5}, others = {0, 3, 5};
  const std::vector<int64_t> more = {0, 2, 5, 5}, threes = {0, 3, 6};
  EXPECT_TRUE(SameLengths(Sequences::Packed(starts), Sequences::Packed(same)));
  EXPECT_FALSE(SameLengths(Sequences::Packed(starts), Sequences::Packed(others)));
  EXPECT_FALSE(SameLengths(Sequences::Packed(starts), Sequences::Packed(more)));
  EXPECT_TRUE(SameLengths(Sequences::Packed(threes), Sequences::Dense(2, 3)));
  EXPECT_FALSE(SameLengths(Sequences::Dense(2, 3), Sequences::Dense(2, 4)));
  EXPECT_FALSE(SameLengths(Sequences::Dense(2, 3), Sequences::Dense(3, 3)));
}

}  // namespace
}  // namespace attendant::attention
