// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/readable.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

TEST(ReadableTest, EscapesControlCharactersAndBytesThatAreNoUtf8) {
  EXPECT_EQ(Readable("d\u00e9j\u00e0 'vu' \\d \"x\"", 100), "d\u00e9j\u00e0 'vu' \\d \"x\"");
  EXPECT_EQ(Readable("a\nb\r\tc", 100), "a\\nb\\r\\tc");
  EXPECT_EQ(Readable(std::string("\0\x1b[31m\x7f", 7), 100), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(Readable("\u0080 \u009b \u00a0", 100), "\\xc2\\x80 \\xc2\\x9b \u00a0");
  EXPECT_EQ(Readable("\xff \xe4\xb8 \xc0\x80", 100), "\\xff \\xe4\\xb8 \\xc0\\x80");
  EXPECT_EQ(Readable("", 100), "");
}

TEST(ReadableTest, CutsBetweenCharacters) {
  EXPECT_EQ(Readable("abc", 3), "abc");
  EXPECT_EQ(Readable("abcd", 3), "abc...");
  const std::string wide = "a\u4e2d\u4e2d";
  EXPECT_EQ(Readable(wide, 7), wide);
  for (const size_t max_bytes : {4, 5, 6}) EXPECT_EQ(Readable(wide, max_bytes), "a\u4e2d...");
  EXPECT_EQ(Readable(wide, 3), "a...");
  EXPECT_EQ(Readable(std::string(10, '\x80'), 2), "\\x80\\x80...");
}

}  // namespace
}  // namespace attendant
