// SPDX-License-Identifier: Apache-2.0
#include "server/text/normalizers/bert_normalizer.h"

#include <gtest/gtest.h>

#include <string>

#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr BertNormalizerConfig kBert = {true, true, true, true};

std::string Normalize(const BertNormalizerConfig& config, const std::string& text) {
  std::string out;
  BertNormalizer(config).Append(text, out.max_size(), out);
  return out;
}

std::string Utf8(const std::u32string& characters) {
  std::string text;
  for (const char32_t c : characters) AppendUtf8(c, text);
  return text;
}

std::string Bert(const std::u32string& characters) { return Normalize(kBert, Utf8(characters)); }

TEST(BertNormalizerTest, EveryStepIsOptional) {
  const std::string text = Utf8(U"A\u0001\tÉ中İ");
  EXPECT_EQ(Normalize({}, text), text);
  EXPECT_EQ(Normalize({.clean_text = true}, text), Utf8(U"A É中İ"));
  EXPECT_EQ(Normalize({.handle_chinese_chars = true}, text), Utf8(U"A\u0001\tÉ 中 İ"));
  EXPECT_EQ(Normalize({.strip_accents = true}, text), Utf8(U"A\u0001\tE中I"));
  EXPECT_EQ(Normalize({.lowercase = true}, text), Utf8(U"a\u0001\té中i\u0307"));
  EXPECT_EQ(Normalize(kBert, text), Utf8(U"a e 中 i"));
}

TEST(BertNormalizerTest, CleansControlsAndWhitespace) {
  EXPECT_EQ(Normalize(kBert, std::string("a\0b\x7F\x1F", 5)), "ab");
  EXPECT_EQ(Bert(U"a\u200Bb\uFEFFc\uFFFDd\uE000e"), "abcde");
  EXPECT_EQ(Bert(U"a\u3000b\u00A0c\u2028d\r\ne"), "a b c d  e");
}

TEST(BertNormalizerTest, LowercasesWithoutContext) {
  EXPECT_EQ(Bert(U"ΟΔΟΣ"), Utf8(U"οδοσ"));  // no final sigma
  EXPECT_EQ(Bert(U"ẞß"), Utf8(U"ßß"));
  EXPECT_EQ(Bert(U"\U00016EA0\uA7CB"), Utf8(U"\U00016EBB\u0264"));  // newer than some ICU
}

TEST(BertNormalizerTest, DecomposesHangul) { EXPECT_EQ(Bert(U"한"), Utf8(U"\u1112\u1161\u11AB")); }

// U+302E has class 224, U+1D165 216, U+0345 240; none but the last is a nonspacing mark.
TEST(BertNormalizerTest, SortsTheMarksThatItKeeps) {
  const std::string sorted = Utf8(U"a\U0001D165\u302E");
  EXPECT_EQ(Bert(U"a\u302E\U0001D165"), sorted);
  EXPECT_EQ(Bert(U"a\u302E\u0345\U0001D165"), sorted);
  EXPECT_EQ(Bert(U"a\U0001D165\u302E"), sorted);
  EXPECT_EQ(Bert(U"a\u302E b\U0001D165"), Utf8(U"a\u302E b\U0001D165"));
}

TEST(BertNormalizerTest, ADroppedControlCharacterDoesNotPartMarks) {
  EXPECT_EQ(Bert(U"a\u302E\u0007\U0001D165"), Utf8(U"a\U0001D165\u302E"));
  EXPECT_EQ(Bert(U"a\u302E\u200B\U0001D165"), Utf8(U"a\U0001D165\u302E"));
}

TEST(BertNormalizerTest, ADroppedStarterPartsMarks) {
  EXPECT_EQ(Bert(U"a\u302E\u0901\U0001D165"), Utf8(U"a\u302E\U0001D165"));
}

TEST(BertNormalizerTest, SortsStably) {
  std::u32string marks, first, second;
  for (int i = 0; i < 1000; ++i) {
    marks += U"\u302E\U0001D165\u302F\U0001D166";
    first += U"\U0001D165\U0001D166";
    second += U"\u302E\u302F";
  }
  EXPECT_EQ(Bert(marks), Utf8(first + second));
}

TEST(BertNormalizerTest, MayBeCutAtSpaces) {
  EXPECT_EQ(Bert(U"É\u302E\U0001D165") + Bert(U" 中É"), Bert(U"É\u302E\U0001D165 中É"));
}

TEST(BertNormalizerTest, LongAsciiRuns) {
  for (const size_t length : {1u, 255u, 256u, 257u, 512u, 5000u}) {
    EXPECT_EQ(Normalize(kBert, std::string(length, 'A')), std::string(length, 'a'));
    EXPECT_EQ(Normalize(kBert, std::string(length, '\x01') + "B"), "b");
  }
}

}  // namespace
}  // namespace attendant
