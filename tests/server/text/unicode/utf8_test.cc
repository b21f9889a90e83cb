// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attendant {
namespace {

TEST(Utf8Test, EveryCharacterReadsBackFromBothSides) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text.clear();
    AppendUtf8(c, text);
    const char* position = text.data();
    ASSERT_EQ(NextCharacter(position), c);
    ASSERT_EQ(position, text.data() + text.size());
    ASSERT_EQ(PreviousCharacter(position), c);
    ASSERT_EQ(FindInvalidUtf8(text), std::nullopt) << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(Utf8Test, CharactersAreNotBytes) {
  EXPECT_EQ(CountCharacters(""), 0);
  EXPECT_EQ(CountCharacters("hello"), 5);
  EXPECT_EQ(CountCharacters("h\u00e9 \u732b \U0001f431"), 6);
}

TEST(Utf8Test, FindsTheFirstInvalidSequence) {
  const std::vector<std::string> invalid = {
      "\x80",              // a tail without a head
      "\xBF\xBF",          //
      "\xC0\x80",          // overlong NUL
      "\xC1\xBF",          // overlong U+007F
      "\xE0\x9F\xBF",      // overlong U+07FF
      "\xF0\x8F\xBF\xBF",  // overlong U+FFFF
      "\xED\xA0\x80",      // surrogates
      "\xED\xBF\xBF",      //
      "\xF4\x90\x80\x80",  // U+110000
      "\xF5\x80\x80\x80",  //
      "\xF8\x88\x80\x80\x80",
      "\xFE",
      "\xFF",
      "\xC3",  // cut off
      "\xE4\xB8",
      "\xF0\x9F\x98",
      "\xC3(",  // the tail is something else
      "\xE4\xB8(",
  };
  for (const std::string& bytes : invalid) {
    for (const size_t offset : {0u, 1u, 7u, 8u, 9u, 31u}) {
      const std::string text = std::string(offset, 'a') + bytes;
      EXPECT_EQ(FindInvalidUtf8(text), offset) << testing::PrintToString(bytes);
      EXPECT_EQ(FindInvalidUtf8(text + " \xC3\xA9 and more"), offset);
    }
    EXPECT_EQ(FindInvalidUtf8("\xC3\xA9" + bytes), 2u);
  }
}

TEST(Utf8Test, ValidTextHasNoInvalidSequence) {
  EXPECT_EQ(FindInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8(std::string(100, '\0')), std::nullopt);
  EXPECT_EQ(
      FindInvalidUtf8("na\xC3\xAFve \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80 plain ASCII again"),
      std::nullopt);
}

}  // namespace
}  // namespace attendant
