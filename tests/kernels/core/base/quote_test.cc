// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/quote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

TEST(QuoteTest, IsShortAndPrintable) {
  EXPECT_EQ(Quote("text"), "'text'");
  EXPECT_THAT(Quote(std::string(1 << 20, 'x')), AllOf(SizeIs(Lt(100u)), HasSubstr("...")));
  EXPECT_EQ(Quote(std::string("a\0\n\xff", 4)), "'a\\x00\\n\\xff'");
}

TEST(QuoteTest, CutsOnlyWhatIsLonger) {
  EXPECT_EQ(Quote("abc", '`', 3), "`abc`");
  EXPECT_EQ(Quote("abcd", '`', 3), "`abc...`");
  EXPECT_EQ(Quote("", '`', 3), "``");
}

}  // namespace
}  // namespace attendant
