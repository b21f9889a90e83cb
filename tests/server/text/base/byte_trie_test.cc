// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/byte_trie.h"

#include <gtest/gtest.h>

#include <string>

namespace attendant {
namespace {

TEST(ByteTrieTest, FindsTheLongestKey) {
  ByteTrie trie;
  EXPECT_TRUE(trie.Insert("a", 1));
  EXPECT_TRUE(trie.Insert("abcd", 4));
  EXPECT_TRUE(trie.Insert("ab", 2));
  EXPECT_FALSE(trie.Insert("ab", 3));

  const auto expect = [&](const std::string& text, int32_t id, size_t bytes) {
    const ByteTrie::Match match = trie.FindLongest(ByteTrie::kRoot, text);
    EXPECT_EQ(match.id, id) << text;
    EXPECT_EQ(match.bytes, bytes) << text;
  };
  expect("abcde", 4, 4);
  expect("abc", 2, 2);
  expect("ax", 1, 1);
  expect("b", ByteTrie::kNoId, 0);
  expect("", ByteTrie::kNoId, 0);
}

TEST(ByteTrieTest, TheEmptyKeyIsNeverTheLongest) {
  ByteTrie trie;
  EXPECT_TRUE(trie.Insert("", 7));
  EXPECT_EQ(trie.id(ByteTrie::kRoot), 7);
  EXPECT_EQ(trie.FindLongest(ByteTrie::kRoot, "x").id, ByteTrie::kNoId);
}

TEST(ByteTrieTest, WalksOnFromThePlaceOfAPrefix) {
  ByteTrie trie;
  trie.Insert("##ing", 1);
  const uint32_t node = trie.Find("##");
  ASSERT_NE(node, ByteTrie::kNoNode);
  EXPECT_EQ(trie.FindLongest(node, "ings").id, 1);
  EXPECT_EQ(trie.Find("#x"), ByteTrie::kNoNode);
  EXPECT_EQ(trie.Find(""), ByteTrie::kRoot);
}

TEST(ByteTrieTest, KeepsManyKeysOfAnyBytes) {
  ByteTrie trie;
  const auto key = [](int i) {
    return std::string{static_cast<char>(i), '\0', static_cast<char>(i >> 8), '\xFF'};
  };
  for (int i = 0; i < 50000; ++i) ASSERT_TRUE(trie.Insert(key(i), i));
  for (int i = 0; i < 50000; ++i) {
    ASSERT_EQ(trie.FindLongest(ByteTrie::kRoot, key(i) + "x").id, i);
  }
}

}  // namespace
}  // namespace attendant
