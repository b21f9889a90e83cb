// SPDX-License-Identifier: Apache-2.0
#include "server/text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Parts as text: an added token is written <id>.
std::vector<std::string> Split(const AddedTokens& tokens, const std::string& text) {
  std::vector<std::string> parts;
  tokens.Split(text, [&](const AddedTokens::Part& part) {
    parts.push_back(part.id == TokenTrie::kNoId ? std::string(part.text)
                                                : absl::StrCat("<", part.id, ">"));
    return true;
  });
  return parts;
}

AddedTokens Make(const std::vector<AddedToken>& list) {
  AddedTokens tokens;
  for (const AddedToken& token : list) EXPECT_TRUE(tokens.Add(token).ok()) << token.content;
  return tokens;
}

TEST(AddedTokensTest, FindsTheLeftmostAndLongest) {
  const AddedTokens tokens = Make({{.content = "[SEP]", .id = 1},
                                   {.content = "ab", .id = 2},
                                   {.content = "abcd", .id = 3},
                                   {.content = "bcd", .id = 4}});
  EXPECT_THAT(Split(tokens, "x[SEP]y"), ElementsAre("x", "<1>", "y"));
  EXPECT_THAT(Split(tokens, "[SEP][SEP]"), ElementsAre("<1>", "<1>"));
  EXPECT_THAT(Split(tokens, "[[SEP]"), ElementsAre("[", "<1>"));
  EXPECT_THAT(Split(tokens, "[SE[SEP]"), ElementsAre("[SE", "<1>"));
  EXPECT_THAT(Split(tokens, "abcd"), ElementsAre("<3>"));
  EXPECT_THAT(Split(tokens, "abc bcd"), ElementsAre("<2>", "c ", "<4>"));
  EXPECT_THAT(Split(tokens, "plain"), ElementsAre("plain"));
  EXPECT_THAT(Split(tokens, ""), IsEmpty());
}

TEST(AddedTokensTest, ASingleWordTouchesNoWordCharacter) {
  const AddedTokens tokens = Make({{.content = "one", .id = 1, .single_word = true}});
  EXPECT_THAT(Split(tokens, "one"), ElementsAre("<1>"));
  EXPECT_THAT(Split(tokens, "one."), ElementsAre("<1>", "."));
  EXPECT_THAT(Split(tokens, "ones oneone \xC3\xA9one"), ElementsAre("ones oneone \xC3\xA9one"));
  EXPECT_THAT(Split(tokens, "one-one"), ElementsAre("<1>", "-", "<1>"));
}

TEST(AddedTokensTest, SwallowsWhitespace) {
  const AddedTokens tokens = Make({{.content = "<l>", .id = 1, .lstrip = true},
                                   {.content = "<r>", .id = 2, .rstrip = true},
                                   {.content = "<b>", .id = 3, .lstrip = true, .rstrip = true}});
  EXPECT_THAT(Split(tokens, "a  <l>  b"), ElementsAre("a", "<1>", "  b"));
  EXPECT_THAT(Split(tokens, "a \xE3\x80\x80<l>"), ElementsAre("a", "<1>"));
  EXPECT_THAT(Split(tokens, "x\xC2\xA0\xE3\x80\x80\xC2\xA0<l>"), ElementsAre("x", "<1>"));
  EXPECT_THAT(Split(tokens, "\xC3\xA9\xC2\xA0<l>"), ElementsAre("\xC3\xA9", "<1>"));
  EXPECT_THAT(Split(tokens, "a  <r>\t\xC2\xA0 b"), ElementsAre("a  ", "<2>", "b"));
  EXPECT_THAT(Split(tokens, " <b> <b> "), ElementsAre("<3>", "<3>"));
}

// As the library, which panics at "<r>  " with `left`.
TEST(AddedTokensTest, WhitespaceThatIsSwallowedIsNoTokenOfItsOwn) {
  const AddedTokens both = Make({{.content = " ", .id = 1, .lstrip = true, .rstrip = true},
                                 {.content = " b", .id = 2, .lstrip = true}});
  EXPECT_THAT(Split(both, "  "), ElementsAre("<1>"));
  EXPECT_THAT(Split(both, "  x   y"), ElementsAre("<1>", "x", "<1>", "y"));
  EXPECT_THAT(Split(both, "  b"), ElementsAre("<1>", "<2>"));
  const AddedTokens left = Make(
      {{.content = "<r>", .id = 1, .rstrip = true}, {.content = " ", .id = 2, .lstrip = true}});
  EXPECT_THAT(Split(left, "<r> "), ElementsAre("<1>"));
  EXPECT_THAT(Split(left, "<r>  "), ElementsAre("<1>"));
  EXPECT_THAT(Split(left, "<r>  x"), ElementsAre("<1>", "x"));
  const AddedTokens plain =
      Make({{.content = "<r>", .id = 1, .rstrip = true}, {.content = " ", .id = 2}});
  EXPECT_THAT(Split(plain, "<r>  x"), ElementsAre("<1>", "<2>", "<2>", "x"));
}

// As the library: each space swallows all those behind it. It would take minutes if each read them.
TEST(AddedTokensTest, ASpaceThatSwallowsSpacesReadsNoneAgain) {
  const AddedTokens tokens = Make({{.content = " ", .id = 1, .rstrip = true}});
  EXPECT_THAT(Split(tokens, "a   b"), ElementsAre("a", "<1>", "<1>", "<1>", "b"));
  EXPECT_THAT(Split(tokens, " \t b "), ElementsAre("<1>", "<1>", "b", "<1>"));
  size_t parts = 0;
  const std::string spaces(1 << 20, ' ');
  EXPECT_TRUE(tokens.Split(spaces, [&](const AddedTokens::Part&) { return ++parts > 0; }));
  EXPECT_EQ(parts, spaces.size());
}

TEST(AddedTokensTest, StopsWhenAskedTo) {
  const AddedTokens tokens = Make({{.content = "|", .id = 1}});
  int visits = 0;
  const auto visit = [&](const AddedTokens::Part&) { return ++visits < 3; };
  EXPECT_FALSE(tokens.Split("a|b|c", visit));
  EXPECT_EQ(visits, 3);
  visits = -100;
  EXPECT_TRUE(tokens.Split("a|b|c", visit));
}

TEST(AddedTokensTest, ATokenMayBeLeftAsText) {
  const AddedTokens tokens =
      Make({{.content = "<s>", .id = 1, .is_text = true}, {.content = "s", .id = 2}});
  EXPECT_THAT(Split(tokens, "s<s>s"), ElementsAre("<2>", "<s>", "<2>"));
}

TEST(AddedTokensTest, RefusesWhatCannotBeFound) {
  AddedTokens tokens = Make({{.content = "x", .id = 1}});
  EXPECT_EQ(tokens.Add({.content = "x", .id = 2}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tokens.Add({.content = "", .id = 2}).code(), absl::StatusCode::kInvalidArgument);
}

// Whatever Unicode the library that knows the characters has: these are of versions 15.1 and 16.
TEST(AddedTokensTest, NewLettersAreOfWordsToo) {
  const AddedTokens tokens = Make({{.content = "one", .id = 1, .single_word = true}});
  for (const std::string letter : {"\U00016D5E", "\U0002EBF0", "\U0001E5F1"}) {
    EXPECT_THAT(Split(tokens, letter + "one"), ElementsAre(letter + "one"));
    EXPECT_THAT(Split(tokens, "one" + letter), ElementsAre("one" + letter));
  }
  EXPECT_THAT(Split(tokens, "\U0001FAE9one"), ElementsAre("\U0001FAE9", "<1>")) << "a symbol";
}

}  // namespace
}  // namespace attendant
