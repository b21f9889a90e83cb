// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/character_index.h"

#include <gtest/gtest.h>

#include <string>

#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

TEST(CharacterIndexTest, IsThatOfALoop) {
  const std::string piece = "a\u00e9\u4e2d\U0001f600 b";
  std::string text;
  for (int copies = 0; copies <= 40; ++copies, text += piece) {
    const CharacterIndex index(text);
    size_t character = 0, at = 0;
    for (; at < text.size(); at += CharacterBytes(text[at]), ++character) {
      ASSERT_EQ(index.CountBefore(at), character) << at;
      ASSERT_EQ(index.ByteOf(character), at);
    }
    EXPECT_EQ(index.CountBefore(text.size()), character);
    EXPECT_EQ(index.ByteOf(character), text.size());
  }
}

TEST(CharacterIndexTest, BlocksMayEndWithTheText) {
  const std::string text(128, 'a');
  EXPECT_EQ(CharacterIndex(text).CountBefore(128), 128u);
  EXPECT_EQ(CharacterIndex(text).ByteOf(128), 128u);
}

}  // namespace
}  // namespace attendant
