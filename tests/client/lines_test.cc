// SPDX-License-Identifier: Apache-2.0
#include "client/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace attendant::client {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  std::string line;
  while (true) {
    const absl::StatusOr<bool> found = NextLine(in, line);
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.value_or(false)) return lines;
    lines.push_back(line);
  }
}

std::vector<std::string> TextLines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  std::string line;
  while (NextTextLine(in, static_cast<int64_t>(lines.size()) + 1, line).value_or(false)) {
    lines.push_back(line);
  }
  return lines;
}

TEST(LinesTest, TheLastLineNeedsNoEnd) {
  EXPECT_THAT(Lines(""), ElementsAre());
  EXPECT_THAT(Lines("\n"), ElementsAre(""));
  EXPECT_THAT(Lines("one\n\ntwo"), ElementsAre("one", "", "two"));
  EXPECT_THAT(Lines("one\ntwo\r\n"), ElementsAre("one", "two\r"));
}

// Lines are read in parts of 4 KiB.
TEST(LinesTest, ALineMayHaveManyParts) {
  for (const size_t bytes : {4094, 4095, 4096, 8190, 8191, 100000}) {
    const std::string line(bytes, 'x');
    EXPECT_THAT(Lines(line), ElementsAre(line)) << bytes;
    EXPECT_THAT(Lines(line + "\n"), ElementsAre(line)) << bytes;
    EXPECT_THAT(Lines(line + "\n" + line + "\nend"), ElementsAre(line, line, "end")) << bytes;
  }
}

TEST(LinesTest, TheEndsOfWindowsAreNoText) {
  EXPECT_THAT(TextLines("one\r\n\r\ntwo\r\r\nthree\r"), ElementsAre("one", "", "two\r", "three"));
}

// It marks a file. Elsewhere it is a character of the text.
TEST(LinesTest, AByteOrderMarkIsNoTextBeforeTheFirstLineAlone) {
  EXPECT_THAT(TextLines("\xEF\xBB\xBF"
                        "one\n\xEF\xBB\xBFtwo"),
              ElementsAre("one", "\xEF\xBB\xBFtwo"));
}

}  // namespace
}  // namespace attendant::client
