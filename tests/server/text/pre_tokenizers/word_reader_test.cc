// SPDX-License-Identifier: Apache-2.0
#include "server/text/pre_tokenizers/word_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  WordReader reader(text);
  for (absl::string_view word = reader.Next(); !word.empty(); word = reader.Next()) {
    words.emplace_back(word);
  }
  return words;
}

TEST(WordReaderTest, PunctuationStandsAlone) {
  EXPECT_THAT(Words("Hey friend!     How are you?!?"),
              ElementsAre("Hey", "friend", "!", "How", "are", "you", "?", "!", "?"));
  EXPECT_THAT(Words("a-b"), ElementsAre("a", "-", "b"));
  EXPECT_THAT(Words("$5+x"), ElementsAre("$", "5", "+", "x"));
}

TEST(WordReaderTest, KnowsUnicodeWhitespaceAndPunctuation) {
  EXPECT_THAT(Words("a\xE3\x80\x80"
                    "b\xC2\xA0"
                    "c\x0B"
                    "d"),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(Words("\xC2\xBFqu\xC3\xA9?"), ElementsAre("\xC2\xBF", "qu\xC3\xA9", "?"));
  EXPECT_THAT(Words("1\xE2\x82\xAC"), ElementsAre("1\xE2\x82\xAC"));  // a symbol, not punctuation
}

TEST(WordReaderTest, NothingIsNothing) {
  EXPECT_THAT(Words(""), IsEmpty());
  EXPECT_THAT(Words(" \n "), IsEmpty());
}

}  // namespace
}  // namespace attendant
