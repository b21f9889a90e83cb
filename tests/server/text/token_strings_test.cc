// SPDX-License-Identifier: Apache-2.0
#include "server/text/token_strings.h"

#include <gtest/gtest.h>

#include <limits>

namespace attendant {
namespace {

TEST(TokenStringsTest, FindsWhatWasAddedInAnyOrder) {
  TokenStrings strings;
  strings.Add(7, "seven");
  strings.Add(0, "zero");
  strings.Add(std::numeric_limits<int32_t>::max(), "東京");
  strings.Add(3, "");
  strings.Add(7, "another seven");
  strings.Seal();
  EXPECT_EQ(strings.Find(0), "zero");
  EXPECT_EQ(strings.Find(3), "");
  EXPECT_EQ(strings.Find(7), "seven");
  EXPECT_EQ(strings.Find(std::numeric_limits<int32_t>::max()), "東京");
  for (const int32_t gap : {-1, 1, 6, 8, std::numeric_limits<int32_t>::min()}) {
    EXPECT_EQ(strings.Find(gap), "") << gap;
  }
}

TEST(TokenStringsTest, EmptyOneFindsNothing) {
  TokenStrings strings;
  strings.Seal();
  EXPECT_EQ(strings.Find(0), "");
}

}  // namespace
}  // namespace attendant
