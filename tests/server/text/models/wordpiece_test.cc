// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;

constexpr int32_t kUnk = 0;

WordPieceConfig Config(const std::string& prefix = "##") {
  WordPieceConfig config;
  config.unk_id = kUnk;
  config.continuing_subword_prefix = prefix;
  config.max_input_chars_per_word = 10;
  int32_t id = kUnk;
  for (const char* token :
       {"[UNK]", "un", "##aff", "##able", "##a", "able", "\xC3\xA9", "##\xC3\xA9", "##"}) {
    config.vocabulary.push_back({token, id++});
  }
  return config;
}

std::vector<int32_t> Ids(const WordPiece& wordpiece, const std::string& word) {
  std::vector<int32_t> ids;
  wordpiece.Append(word, ids, nullptr);
  return ids;
}

TEST(WordPieceTest, TakesTheLongestPieces) {
  const WordPiece wordpiece(Config());
  EXPECT_THAT(Ids(wordpiece, "unaffable"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(wordpiece, "able"), ElementsAre(5));
  EXPECT_THAT(Ids(wordpiece, "una"), ElementsAre(1, 4));
}

TEST(WordPieceTest, AWordWithAnUnknownPartIsUnknownAsAWhole) {
  const WordPiece wordpiece(Config());
  EXPECT_THAT(Ids(wordpiece, "unaffx"), ElementsAre(kUnk));
  EXPECT_THAT(Ids(wordpiece, "x"), ElementsAre(kUnk));
  // Greedy: the longest first piece decides, even where a shorter one would do.
  EXPECT_THAT(Ids(wordpiece, "unable"), ElementsAre(1, 3));
}

TEST(WordPieceTest, KeepsWhatIsThere) {
  const WordPiece wordpiece(Config());
  std::vector<int32_t> ids = {42};
  wordpiece.Append("unx", ids, nullptr);
  EXPECT_THAT(ids, ElementsAre(42, kUnk));
}

TEST(WordPieceTest, CountsCharactersNotBytes) {
  const WordPiece wordpiece(Config());
  std::string word;
  for (int i = 0; i < 10; ++i) word += "\xC3\xA9";
  EXPECT_EQ(Ids(wordpiece, word).size(), 10u);
  EXPECT_THAT(Ids(wordpiece, word + "\xC3\xA9"), ElementsAre(kUnk));
}

TEST(WordPieceTest, AnEmptyPrefixContinuesWithAnyToken) {
  const WordPiece wordpiece(Config(""));
  EXPECT_THAT(Ids(wordpiece, "unable"), ElementsAre(1, 5));
}

TEST(WordPieceTest, WithoutContinuingPiecesOnlyWholeWordsAreKnown) {
  const WordPiece wordpiece(Config("@@"));
  EXPECT_THAT(Ids(wordpiece, "able"), ElementsAre(5));
  EXPECT_THAT(Ids(wordpiece, "unable"), ElementsAre(kUnk));
}

}  // namespace
}  // namespace attendant
