// SPDX-License-Identifier: Apache-2.0
// Where tokens come from, against what the `tokenizers` library says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text/tokenizer.h"
#include "tests/server/text/family_files.h"

namespace attendant {

void PrintTo(const TokenOffset& offset, std::ostream* out) {
  *out << offset.begin << "-" << offset.end;
}

namespace {

using nlohmann::json;
using testing::ElementsAre;

constexpr int64_t kLimit = 1000;

TokenizedText WithOffsets(const Tokenizer& tokenizer, const std::string& text,
                          TokenizerOptions options = {.max_tokens = kLimit}) {
  if (options.offsets == OffsetUnit::kNone) options.offsets = OffsetUnit::kCharacters;
  absl::StatusOr<TokenizedText> tokenized = tokenizer.Tokenize(text, options);
  EXPECT_TRUE(tokenized.ok()) << tokenized.status();
  return tokenized.ok() ? *std::move(tokenized) : TokenizedText();
}

TEST(OffsetsTest, LongTextsHaveNone) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("roberta.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const TokenizerOptions options{
      .max_tokens = kLimit, .truncate = true, .offsets = OffsetUnit::kBytes};
  std::string text;
  while (text.size() < (size_t{2} << 20)) text += "a ";
  EXPECT_TRUE(tokenizer->Tokenize(text, options).ok());
  text += "a";
  EXPECT_EQ(tokenizer->Tokenize(text, options).status().message(),
            "offsets are told of texts up to 2097152 bytes, this one has 2097153");
  EXPECT_TRUE(tokenizer->Tokenize(text, {.max_tokens = kLimit, .truncate = true}).ok());
}

TEST(OffsetsTest, EveryTextHasTheLibrarysOffsets) {
  const json texts = ReadFamilyFile("texts.json");
  const json ids = ReadFamilyFile("ids.json");
  const json offsets = ReadFamilyFile("offsets.json");
  ASSERT_EQ(offsets.size(), ids.size());
  for (const auto& [name, expected] : offsets.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr) << name;
    int wrong = 0;
    for (size_t i = 0; i < texts.size() && wrong < 3; ++i) {
      const TokenizedText found =
          WithOffsets(*tokenizer, texts[i].get<std::string>(), {.max_tokens = 1 << 20});
      ASSERT_EQ(found.token_ids, ids[name][i].get<std::vector<int32_t>>()) << name << " " << i;
      const bool equal = OffsetsChecksum(found) == expected[i].get<uint32_t>();
      wrong += !equal;
      EXPECT_TRUE(equal) << name << ": " << texts[i].dump(-1, ' ', true) << ": "
                         << testing::PrintToString(found.offsets);
    }
  }
}

TEST(OffsetsTest, EveryPairHasTheLibrarysOffsets) {
  const json pairs = ReadFamilyFile("pairs.json");
  for (const auto& [name, cases] : pairs.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr) << name;
    for (const json& pair : cases) {
      const auto found = tokenizer->TokenizePair(
          pair[0].get<std::string>(), pair[1].get<std::string>(),
          {.max_tokens = pair[2].get<int64_t>(), .offsets = OffsetUnit::kCharacters});
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(OffsetsChecksum(*found), pair[5].get<uint32_t>()) << name << ": " << pair;
    }
  }
}

TEST(OffsetsTest, NobodyIsToldWithoutAsking) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("roberta.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const auto tokenized = tokenizer->Tokenize("the fox", {.max_tokens = kLimit});
  ASSERT_TRUE(tokenized.ok()) << tokenized.status();
  EXPECT_TRUE(tokenized->offsets.empty());
}

TEST(OffsetsTest, BytesAreCountedToo) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("prefixed.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "\xC3\xA9 a";  // each character is a token
  const TokenizedText characters = WithOffsets(*tokenizer, text);
  const TokenizedText bytes =
      WithOffsets(*tokenizer, text, {.max_tokens = kLimit, .offsets = OffsetUnit::kBytes});
  EXPECT_EQ(characters.offsets.front(), (TokenOffset{0, 1}));
  EXPECT_EQ(characters.offsets.back(), (TokenOffset{2, 3}));
  EXPECT_EQ(bytes.offsets.front(), (TokenOffset{0, 2}));
  EXPECT_EQ(bytes.offsets.back(), (TokenOffset{3, 4}));
}

// The token takes the space before it in, and its offset leaves it out.
TEST(OffsetsTest, BytesLeaveWholeCharactersOut) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("roberta.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  for (const std::string space : {" ", "\xC2\xA0", "\xE2\x80\xA8"}) {
    const std::string text = absl::StrCat("a", space, "<mask>");
    const TokenizedText found =
        WithOffsets(*tokenizer, text, {.max_tokens = kLimit, .offsets = OffsetUnit::kBytes});
    const auto begin = static_cast<uint32_t>(1 + space.size());
    EXPECT_EQ(found.offsets.end()[-2], (TokenOffset{begin, begin + 6})) << text;
  }
}

TEST(OffsetsTest, SpecialTokensHaveNoneAndThePromptCounts) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("clip.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const TokenizedText tokenized =
      WithOffsets(*tokenizer, "b", {.max_tokens = kLimit, .prompt = "a: "});
  EXPECT_THAT(tokenized.offsets,
              ElementsAre(TokenOffset{0, 0}, TokenOffset{0, 1}, TokenOffset{1, 2},
                          TokenOffset{3, 4}, TokenOffset{0, 0}));
}

// The first token that is left keeps its space: the library trims after it truncates.
TEST(OffsetsTest, WhitespaceIsTrimmedAfterTheCut) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("roberta.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const TokenizedText whole = WithOffsets(*tokenizer, "the the the");
  ASSERT_THAT(whole.offsets, ElementsAre(TokenOffset{0, 0}, TokenOffset{0, 3}, TokenOffset{4, 7},
                                         TokenOffset{8, 11}, TokenOffset{0, 0}));
  const TokenizedText cut =
      WithOffsets(*tokenizer, "the the the", {.max_tokens = 4, .side = TruncationSide::kLeft});
  EXPECT_THAT(cut.offsets, ElementsAre(TokenOffset{0, 0}, TokenOffset{3, 7}, TokenOffset{8, 11},
                                       TokenOffset{0, 0}));
  // Of "the", " the", ",", "the", the last two are left: neither has a space.
  const TokenizedText last =
      WithOffsets(*tokenizer, "the the,the", {.max_tokens = 4, .side = TruncationSide::kLeft});
  EXPECT_THAT(last.offsets, ElementsAre(TokenOffset{0, 0}, TokenOffset{7, 8}, TokenOffset{8, 11},
                                        TokenOffset{0, 0}));
}

// Behind a processor that makes one list of special tokens and text, the first token is special.
TEST(OffsetsTest, TheTextsFirstTokenIsTheFirstOnlyInAListOfItsOwn) {
  const auto byte_level = nlohmann::json::parse(
      R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})");
  const auto bert =
      nlohmann::json::parse(R"({"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]})");
  const auto roberta = nlohmann::json::parse(
      R"({"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
          "trim_offsets": false, "add_prefix_space": true})");
  const auto sequence = [](const std::vector<nlohmann::json>& processors) {
    return nlohmann::json{{"type", "Sequence"}, {"processors", processors}};
  };
  nlohmann::json file = ReadFamilyFile("roberta.json");
  const auto second_begins = [&](const nlohmann::json& processor) {
    file["post_processor"] = processor;
    const auto tokenizer = LoadFromContents(file.dump());
    return WithOffsets(*tokenizer, "the the the", {.max_tokens = 4, .side = TruncationSide::kLeft})
        .offsets[1]
        .begin;
  };
  EXPECT_EQ(second_begins(sequence({byte_level, bert})), 3u);
  EXPECT_EQ(second_begins(sequence({bert, byte_level})), 4u);
  EXPECT_EQ(second_begins(sequence({roberta, byte_level})), 4u);
  EXPECT_EQ(second_begins(sequence({sequence({bert}), byte_level})), 4u);
  file["post_processor"] = sequence({bert, byte_level});
  EXPECT_THAT(WithOffsets(*LoadFromContents(file.dump()), "the the the",
                          {.max_tokens = 2, .side = TruncationSide::kLeft, .special_tokens = false})
                  .offsets,
              ElementsAre(TokenOffset{3, 7}, TokenOffset{8, 11}));
  EXPECT_THAT(
      WithOffsets(*LoadFromContents(file.dump()), " the the").offsets,
      ElementsAre(TokenOffset{0, 0}, TokenOffset{0, 4}, TokenOffset{5, 8}, TokenOffset{0, 0}));
  const auto second_text_begins = [&](const nlohmann::json& processor) {
    file["post_processor"] = sequence({processor, byte_level});
    const auto tokenizer = LoadFromContents(file.dump());
    const auto pair = tokenizer->TokenizePair("the", "the the the",
                                              {.max_tokens = processor == bert ? 6 : 7,
                                               .side = TruncationSide::kLeft,
                                               .offsets = OffsetUnit::kCharacters});
    EXPECT_TRUE(pair.ok()) << pair.status();
    return pair->offsets[pair->offsets.size() - 3].begin;
  };
  EXPECT_EQ(second_text_begins(bert), 3u);
  EXPECT_EQ(second_text_begins(roberta), 4u);
}

// A second time it leaves out what is left, unless there are fewer characters: the library's
// answer. The token's text ends with two.
TEST(OffsetsTest, ASecondTrimCountsCharactersInBytesToo) {
  json file = json::parse(R"({
      "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -4], ["b", -5]]},
      "post_processor": {"type": "Sequence", "processors": [
          {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
          {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2],
           "trim_offsets": false, "add_prefix_space": true},
          {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}]}})");
  const auto tokenizer = LoadFromContents(file.dump());
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "\u1112\r\n";
  EXPECT_EQ(WithOffsets(*tokenizer, text).offsets[1], (TokenOffset{0, 1}));
  EXPECT_EQ(WithOffsets(*tokenizer, text, {.max_tokens = kLimit, .offsets = OffsetUnit::kBytes})
                .offsets[1],
            (TokenOffset{0, 3}));
}

// Each would take minutes if anything were quadratic; the test's time limit is the judge.
TEST(OffsetsTest, HostileTextsTakeNoTime) {
  const json offsets = ReadFamilyFile("offsets.json");
  constexpr size_t kCount = 1 << 16;
  std::string accents;
  for (size_t i = 0; i < kCount; ++i) accents += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";
  for (const auto& [name, expected] : offsets.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr);
    for (const std::string& text :
         {std::string(kCount, 'a'), std::string(kCount, ' '), accents, std::string(kCount, '\n')}) {
      const TokenizedText found = WithOffsets(*tokenizer, text, {.max_tokens = 1 << 20});
      EXPECT_EQ(found.offsets.size(), found.token_ids.size());
    }
  }
}

// Each space swallows all spaces behind it, and is found in those of the one before. Would take
// hours if anything were quadratic; the test's time limit is the judge.
TEST(OffsetsTest, SpacesThatSwallowSpacesTakeLinearTime) {
  json file = ReadFamilyFile("roberta.json");
  for (const bool normalized : {false, true}) {
    file["added_tokens"][5] = {{"id", 420},       {"content", " "}, {"single_word", false},
                               {"lstrip", false}, {"rstrip", true}, {"normalized", normalized},
                               {"special", false}};
    const auto tokenizer = LoadFromContents(file.dump());
    ASSERT_NE(tokenizer, nullptr);
    // The library's.
    EXPECT_THAT(WithOffsets(*tokenizer, "a \u2003 \u2003b").offsets,
                ElementsAre(TokenOffset{0, 0}, TokenOffset{0, 1}, TokenOffset{5, 5},
                            TokenOffset{5, 5}, TokenOffset{5, 6}, TokenOffset{0, 0}));
    std::string wide = "a";
    for (int i = 0; i < 50; ++i) wide += " \u2003";
    EXPECT_EQ(WithOffsets(*tokenizer, wide + "b").offsets[2], (TokenOffset{101, 101}));
    EXPECT_EQ(
        WithOffsets(*tokenizer, wide + "b", {.max_tokens = kLimit, .offsets = OffsetUnit::kBytes})
            .offsets[2],
        (TokenOffset{201, 201}));
    const uint32_t spaces = (1 << 20) - 1;
    const std::string text = absl::StrCat("a", std::string(spaces, ' '), "a");
    for (const OffsetUnit unit : {OffsetUnit::kCharacters, OffsetUnit::kBytes}) {
      const TokenizedText found =
          WithOffsets(*tokenizer, text, {.max_tokens = 1 << 21, .offsets = unit});
      ASSERT_EQ(found.offsets.size(), spaces + 4);
      for (uint32_t i = 0; i < spaces; ++i) {
        ASSERT_EQ(found.offsets[2 + i], (TokenOffset{spaces + 1, spaces + 1})) << i;
      }
    }
  }
}

// With a Unigram model the library looks at a token's text where the token is unknown. Its answers.
TEST(OffsetsTest, UnknownTextIsTrimmedToo) {
  json file = json::parse(R"({
      "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["z", -3], ["a", -2],
                ["b", -2], [" a", -1], ["b ", -1], ["  ", -1.5], ["\u0120c", -1]]},
      "post_processor": {"type": "RobertaProcessing", "sep": ["b", 3], "cls": ["a", 2],
                         "trim_offsets": true, "add_prefix_space": true}})");
  using Offsets = std::vector<TokenOffset>;
  const auto offsets_of = [&file](const char* text) {
    const auto tokenizer = LoadFromContents(file.dump());
    return tokenizer == nullptr ? Offsets() : WithOffsets(*tokenizer, text).offsets;
  };
  const TokenOffset none = {0, 0};
  EXPECT_EQ(offsets_of("a b a"), (Offsets{none, {0, 1}, {2, 2}, {2, 3}, {4, 5}, none}));
  EXPECT_EQ(offsets_of("  a  b "), (Offsets{none, {2, 2}, {2, 3}, {5, 5}, {5, 6}, none}));
  EXPECT_EQ(offsets_of("\n\u3000 x \u00e4 a"), (Offsets{none, {3, 6}, {7, 8}, none}));
  EXPECT_EQ(offsets_of(" a"), (Offsets{none, {0, 2}, none}));
  EXPECT_EQ(offsets_of("\u0120c a "), (Offsets{none, {0, 2}, {3, 4}, {5, 5}, none}));
  file["post_processor"]["add_prefix_space"] = false;
  EXPECT_EQ(offsets_of(" a"), (Offsets{none, {1, 2}, none}));
  EXPECT_EQ(offsets_of("\u0120c a "), (Offsets{none, {1, 2}, {3, 4}, {5, 5}, none}));
  // The token of a byte has no space, whatever it stands for.
  file["model"]["byte_fallback"] = true;
  for (int byte = 0; byte < 256; ++byte) {
    file["model"]["vocab"].push_back(json::array({absl::StrFormat("<0x%02X>", byte), -9}));
  }
  EXPECT_EQ(offsets_of("a b a"), (Offsets{none, {0, 1}, {1, 2}, {2, 3}, {4, 5}, none}));
}

}  // namespace
}  // namespace attendant
