// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/token_trie.h"

#include <gtest/gtest.h>

#include <string>

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
  EXPECT_EQ(trie.id(TokenTrie::kRoot), 7);
  EXPECT_EQ(trie.FindLongest(TokenTrie::kRoot, "x").id, TokenTrie::kNoId);
}

TEST(TokenTrieTest, WalksOnFromThePlaceOfAPrefix) {
  TokenTrie trie;
  trie.Insert("##ing", 1);
  const uint32_t node = trie.Find("##");
  ASSERT_NE(node, TokenTrie::kNoNode);
  EXPECT_EQ(trie.FindLongest(node, "ings").id, 1);
  EXPECT_EQ(trie.Find("#x"), TokenTrie::kNoNode);
  EXPECT_EQ(trie.Find(""), TokenTrie::kRoot);
}

TEST(TokenTrieTest, KeepsManyKeysOfAnyBytes) {
  TokenTrie trie;
  const auto key = [](int i) {
    return std::string{static_cast<char>(i), '\0', static_cast<char>(i >> 8), '\xFF'};
  };
  for (int i = 0; i < 50000; ++i) ASSERT_TRUE(trie.Insert(key(i), i));
  for (int i = 0; i < 50000; ++i) {
    ASSERT_EQ(trie.FindLongest(TokenTrie::kRoot, key(i) + "x").id, i);
  }
}

}  // namespace
}  // namespace attendant
