// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "server/text/unicode/characters.h"

namespace attendant {
namespace {

std::string Replaced(const char* regex, const std::string& text) {
  const absl::StatusOr<Pattern> pattern = Pattern::Parse(regex);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  std::string out;
  pattern->AppendReplaced(text, "_", out.max_size(), out);
  return out;
}

TEST(PatternTest, FindsCharactersBeyondAscii) {
  EXPECT_EQ(Replaced(" {2,}", "\xE4\xB8\xAD  \xE6\x96\x87 x"), "\xE4\xB8\xAD_\xE6\x96\x87 x");
  EXPECT_EQ(Replaced("[b-\xC3\xA9]+", "a\xC3\xA9 \xC3\xAA"), "a_ \xC3\xAA");
  EXPECT_EQ(Replaced("[^a]",
                     "a\xF0\x9F\x98\x80"
                     "a"),
            "a_a");
  EXPECT_EQ(Replaced("\\s+", "a\xE3\x80\x80 b"), "a_b");
  EXPECT_EQ(Replaced("\\S+", " \xE4\xB8\xAD "), " _ ");
  EXPECT_EQ(Replaced("\\p{N}", "a\xE2\x85\xA7\xC2\xB2"), "a__");
  EXPECT_EQ(Replaced("[^\\s\\p{L}]", "\xE4\xB8\xAD\xE3\x80\x82"), "\xE4\xB8\xAD_");
  EXPECT_EQ(Replaced("\\P{L}", "\xC3\xA9\xE2\x82\xAC"), "\xC3\xA9_");
}

TEST(PatternTest, AnOptionalBeginningMayBeMissing) {
  EXPECT_EQ(Replaced(" ?\xE4\xB8\xAD", "x\xE4\xB8\xAD \xE4\xB8\xAD"), "x__");
}

TEST(CharacterClassTest, IsTheCategoryAndWhetherItIsWhitespace) {
  for (const char32_t c : {U'a', U'7', U' ', U'\n', U'\u3000', U'\u4E2D', U'\u00B2', U'\uFFFF',
                           U'\U0001F600', U'\U00010000', U'\U0010FFFF'}) {
    const uint32_t whitespace = IsWhitespace(c) ? kWhitespaceClass : 0;
    EXPECT_EQ(CharacterClass(c), MajorCategory(c) | whitespace) << static_cast<uint32_t>(c);
  }
}

}  // namespace
}  // namespace attendant
