// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/token_trie.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

TEST(TokenTrieTest, FindsTheLongestKey) {
  TokenTrie trie;
  EXPECT_TRUE(trie.Insert("a", 1));
  EXPECT_TRUE(trie.Insert("abcd", 4));
  EXPECT_TRUE(trie.Insert("ab", 2));
  EXPECT_FALSE(trie.Insert("ab", 3));

  const auto expect = [&](const std::string& text, int32_t id, size_t bytes) {
    const TokenTrie::Match match = trie.FindLongest(TokenTrie::kRoot, text);
    EXPECT_EQ(match.id, id) << text;
    EXPECT_EQ(match.bytes, bytes) << text;
  };
  expect("abcde", 4, 4);
  expect("abc", 2, 2);
  expect("ax", 1, 1);
  expect("b", TokenTrie::kNoId, 0);
  expect("", TokenTrie::kNoId, 0);
}

TEST(TokenTrieTest, TheEmptyKeyIsNeverTheLongest) {
  TokenTrie trie;
  EXPECT_TRUE(trie.Insert("", 7));
  EXPECT_EQ(trie.FindId(""), 7);
  EXPECT_EQ(trie.FindLongest(TokenTrie::kRoot, "x").id, TokenTrie::kNoId);
}

TEST(TokenTrieTest, WalksOnFromThePlaceOfAPrefix) {
  TokenTrie trie;
  trie.Insert("##ing", 1);
  const uint32_t node = trie.Find("##").node;
  ASSERT_NE(node, TokenTrie::kNoNode);
  EXPECT_EQ(trie.FindLongest(node, "ings").id, 1);
  EXPECT_EQ(trie.Find("#x").node, TokenTrie::kNoNode);
  EXPECT_EQ(trie.Find("").node, TokenTrie::kRoot);
}

TEST(TokenTrieTest, KeepsManyKeysOfAnyCharacters) {
  TokenTrie trie;
  const auto key = [](int i) {
    std::string text(1, '\0');
    AppendUtf8(static_cast<char32_t>(i), text);
    AppendUtf8(static_cast<char32_t>(i % 7 == 0 ? 0x10FFFF : 'a'), text);
    return text;
  };
  std::vector<int> characters;
  for (int c = 0; c < 0x20000; c += 3) {
    if (c < 0xD800 || c >= 0xE000) characters.push_back(c);
  }
  for (const int c : characters) ASSERT_TRUE(trie.Insert(key(c), c));
  for (const int c : characters) {
    ASSERT_EQ(trie.FindLongest(TokenTrie::kRoot, key(c) + "x").id, c);
    ASSERT_EQ(trie.FindLongest(TokenTrie::kRoot, key(c) + "x").bytes, key(c).size());
    ASSERT_EQ(trie.FindId(key(c + 1)), TokenTrie::kNoId);
  }
}

TEST(TokenTrieTest, StepsByCharacter) {
  TokenTrie trie;
  trie.Insert("\xE4\xB8\xAD\xE6\x96\x87", 1);  // U+4E2D U+6587
  const TokenTrie::Place first = trie.Step(TokenTrie::kRoot, 0x4E2D);
  ASSERT_NE(first.node, TokenTrie::kNoNode);
  EXPECT_EQ(first.id, TokenTrie::kNoId);
  EXPECT_EQ(trie.Step(first.node, 0x6587).id, 1);
  EXPECT_EQ(trie.Step(first.node, 0x6588).node, TokenTrie::kNoNode);
  EXPECT_EQ(trie.Step(TokenTrie::kRoot, 0xE4).node, TokenTrie::kNoNode);
}

}  // namespace
}  // namespace attendant
