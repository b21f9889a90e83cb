// SPDX-License-Identifier: Apache-2.0
// Every kind of tokenizer against what the `tokenizers` library gave;
// tests/golden/tokenizer/make_families.py says how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"
#include "tests/server/text/family_files.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;

constexpr int64_t kNoLimit = int64_t{1} << 30;

std::vector<int32_t> Ids(const Tokenizer& tokenizer, const std::string& text) {
  const absl::StatusOr<TokenizedText> tokenized =
      tokenizer.Tokenize(text, {.max_tokens = kNoLimit});
  EXPECT_TRUE(tokenized.ok()) << tokenized.status();
  return tokenized.ok() ? tokenized->token_ids : std::vector<int32_t>();
}

TEST(FamiliesTest, EveryTextHasTheLibrarysIds) {
  const json texts = ReadFamilyFile("texts.json");
  const json ids = ReadFamilyFile("ids.json");
  ASSERT_GE(ids.size(), 11u);
  ASSERT_GE(texts.size(), 300u);
  for (const auto& [name, expected] : ids.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr) << name;
    int wrong = 0;
    for (size_t i = 0; i < texts.size() && wrong < 3; ++i) {
      const std::vector<int32_t> found = Ids(*tokenizer, texts[i].get<std::string>());
      const auto wanted = expected[i].get<std::vector<int32_t>>();
      wrong += found != wanted;
      EXPECT_EQ(found, wanted) << name << ": " << texts[i].dump(-1, ' ', true);
    }
  }
}

TEST(FamiliesTest, EveryPairHasTheLibrarysIdsAndSegments) {
  const json pairs = ReadFamilyFile("pairs.json");
  ASSERT_GE(pairs.size(), 15u);
  int truncated = 0;
  for (const auto& [name, cases] : pairs.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr) << name;
    for (const json& pair : cases) {
      const auto found =
          tokenizer->TokenizePair(pair[0].get<std::string>(), pair[1].get<std::string>(),
                                  {.max_tokens = pair[2].get<int64_t>()});
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->token_ids, pair[3].get<std::vector<int32_t>>()) << name << ": " << pair;
      EXPECT_EQ(found->segment_ids, pair[4].get<std::vector<int32_t>>()) << name << ": " << pair;
      truncated += found->truncated();
    }
  }
  EXPECT_GT(truncated, 300);
}

// Roberta's template has four special tokens.
TEST(FamiliesTest, OneTextOfAPairIsCutAlone) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("roberta.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const auto cut = [&](PairTruncation pair, TruncationSide side, int64_t limit) {
    return tokenizer->TokenizePair("the the the", "the fox",
                                   {.max_tokens = limit, .side = side, .pair = pair});
  };
  const auto whole = cut(PairTruncation::kLongestFirst, TruncationSide::kRight, 100);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto single = tokenizer->Tokenize("the the the", {.max_tokens = 100});
  ASSERT_TRUE(single.ok()) << single.status();
  const auto first_len = static_cast<std::ptrdiff_t>(single->token_ids.size()) - 2;
  const std::vector<int32_t>& ids = whole->token_ids;
  const auto without = [&](std::ptrdiff_t at) {
    std::vector<int32_t> rest = ids;
    rest.erase(rest.begin() + at);
    return rest;
  };
  const auto len = static_cast<int64_t>(ids.size());
  const auto expect = [&](PairTruncation pair, TruncationSide side, std::ptrdiff_t gone) {
    const auto found = cut(pair, side, len - 1);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->token_ids, without(gone));
    EXPECT_EQ(found->tokens_seen, len);
  };
  expect(PairTruncation::kOnlyFirst, TruncationSide::kLeft, 1);
  expect(PairTruncation::kOnlyFirst, TruncationSide::kRight, first_len);
  expect(PairTruncation::kOnlySecond, TruncationSide::kLeft, first_len + 3);
  expect(PairTruncation::kOnlySecond, TruncationSide::kRight, len - 2);
  expect(PairTruncation::kLongestFirst, TruncationSide::kLeft, 1);
  const int64_t second_len = len - 4 - first_len;
  EXPECT_TRUE(cut(PairTruncation::kOnlyFirst, TruncationSide::kRight, second_len + 5).ok());
  EXPECT_EQ(std::string(cut(PairTruncation::kOnlyFirst, TruncationSide::kRight, second_len + 4)
                            .status()
                            .message()),
            absl::StrCat("only the first text may be cut, but the second one alone has ",
                         second_len, " tokens, and a pair has room for ", second_len));
}

TEST(FamiliesTest, APairThatIsTooLongOrNoTextIsRefused) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("roberta.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const auto message = [&](absl::string_view first, absl::string_view second, int64_t limit) {
    return std::string(
        tokenizer->TokenizePair(first, second, {.max_tokens = limit, .truncate = false})
            .status()
            .message());
  };
  EXPECT_EQ(message("the", "the", 6), "");
  EXPECT_EQ(message("the", "the", 5), "the pair of texts has 6 tokens, the limit is 5");
  EXPECT_EQ(message("the", "a\xFF", 9), "invalid UTF-8 at byte 1 of the second text");
  EXPECT_EQ(message("\xFF", "a", 9), "invalid UTF-8 at byte 0");
  EXPECT_EQ(message("", "", 3), "max_tokens is 3, the special tokens alone are 4");
}

TEST(FamiliesTest, ATokenizerWithoutATemplateForPairsSaysSo) {
  json file = ReadFamilyFile("modernbert.json");
  file["post_processor"]["pair"] = json::array();
  const auto tokenizer = LoadFromContents(file.dump());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(std::string(tokenizer->TokenizePair("a", "b", {.max_tokens = 9}).status().message()),
              testing::HasSubstr("no template for two texts"));
}

TEST(FamiliesTest, EveryCharacterHasTheLibrarysIds) {
  const json hashes = ReadFamilyFile("characters.json");
  ASSERT_GE(hashes.size(), 6u);
  for (const auto& [name, expected] : hashes.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr) << name;
    Crc32 crc;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      std::string character;
      AppendUtf8(c, character);
      const std::vector<int32_t> ids =
          Ids(*tokenizer, absl::StrCat("a", character, " ", character, "b"));
      crc.Add(absl::StrJoin(ids, " ") + "\n");
    }
    EXPECT_EQ(crc.value(), expected.get<uint32_t>()) << name;
  }
}

json With(const std::string& name, const std::string& pointer, json value) {
  json file = ReadFamilyFile(name + ".json");
  file[json::json_pointer(pointer)] = std::move(value);
  return file;
}

void ExpectRefused(const json& file, absl::StatusCode code, const std::string& message) {
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", file.dump());
  const absl::Status status = LoadTokenizer(directory.path()).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
}

TEST(FamiliesTest, NamesTheOptionThatIsNotSupported) {
  const auto refused = [](const json& file, const std::string& message) {
    ExpectRefused(file, absl::StatusCode::kUnimplemented, message);
  };
  refused(With("roberta", "/model/dropout", 0.1), "model.dropout is not supported");
  refused(With("roberta", "/post_processor",
               {{"type", "Sequence"},
                {"processors",
                 {ReadFamilyFile("roberta.json")["post_processor"],
                  ReadFamilyFile("roberta.json")["post_processor"]}}}),
          "post_processor.processors has 2 that add tokens; 1 is supported");
  refused(With("removed", "/pre_tokenizer/behavior", "Dropped"),
          "pre_tokenizer.behavior 'Dropped' is not supported");
  // A first character that became several pieces begins each of them, as the library has it.
  refused(With("first_word", "/normalizer/type", "NFD"),
          "prepend_scheme 'first' is not supported with this normalizer");
  for (const json& step : {json{{"type", "ByteLevel"}, {"add_prefix_space", false}},
                           json{{"type", "Split"},
                                {"pattern", {{"Regex", "\\S"}}},
                                {"behavior", "Isolated"},
                                {"invert", false}}}) {
    refused(With("first_word", "/pre_tokenizer/pretokenizers/0", step),
            "prepend_scheme 'first' is not supported with the steps before it");
  }
  for (const char* regex :
       {"a*", "a|", ".", "^a", "a$", "\\b", "a+?", "a++", "(a+|b)c", "(a)", "a+(?:b|c)",
        "[[:alpha:]]", "[a&&b]", "\\p{Greek}", "(?!a)b", "(?<=a)b", "a{2", "[a", "(?:a"}) {
    refused(With("removed", "/pre_tokenizer/pattern", {{"Regex", regex}}),
            "pre_tokenizer.pattern.Regex '");
  }
}

TEST(FamiliesTest, NamesTheMemberThatIsNotValid) {
  const auto refused = [](const json& file, const std::string& message) {
    ExpectRefused(file, absl::StatusCode::kInvalidArgument, message);
  };
  refused(With("roberta", "/model/merges/1", "ab"), "model.merges[1] is not two tokens");
  refused(With("roberta", "/model/merges/1", "a b c"), "model.merges[1] is not two tokens");
  refused(With("roberta", "/model/merges/2", "zz q"), "model.merges[2] needs 'zz', which is not");
  refused(With("llama", "/model/merges/0", {"a"}), "model.merges[0] has no string at [0]");
  refused(With("prefixed", "/model/merges/0/1", "a"), "lacks continuing_subword_prefix");
  refused(With("gemma", "/model/unk_token", "<no>"), "model.unk_token is not in model.vocab");
  refused(With("gemma", "/normalizer/content", std::string(17, 'x')),
          "normalizer.content has 17 bytes, the limit is 16");
  refused(With("gemma", "/pre_tokenizer/pattern/String", ""), "pattern.String is empty");
  refused(With("gemma", "/normalizer", {{"type", "Prepend"}, {"prepend", ""}}),
          "normalizer.prepend is empty");
  refused(With("gemma", "/pre_tokenizer/pattern/String", std::string(65, 'x') + "\xC3\xA9"),
          "pre_tokenizer.pattern.String has 66 characters, the limit is 64");
  refused(With("modernbert", "/added_tokens/6/content", std::string(16 << 20, 'x')),
          "added_tokens has 16777244 bytes of tokens, the limit is 16777216");
  refused(
      With("clip", "/normalizer/normalizers", json(std::vector<json>(65, json{{"type", "NFC"}}))),
      "normalizer.normalizers has 65 parts, the limit is 64");
}

// A match looks at its characters one in another: a longer one ended the process.
TEST(FamiliesTest, ALiteralPatternHasAtMost64Characters) {
  const std::string literal = absl::StrReplaceAll(std::string(64, 'x'), {{"x", "\xC3\xA9"}});
  const auto tokenizer =
      LoadFromContents(With("gemma", "/normalizer/pattern/String", literal).dump());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(Ids(*tokenizer, literal), Ids(*tokenizer, "\xE2\x96\x81"));
  ExpectRefused(With("gemma", "/normalizer/pattern/String", literal + "x"),
                absl::StatusCode::kInvalidArgument,
                "normalizer.pattern.String has 65 characters, the limit is 64");
}

TEST(FamiliesTest, ATemplateInASequenceGivesItsSegments) {
  const auto tokenizer = LoadFromContents(ReadFamilyFile("llama.json").dump());
  ASSERT_NE(tokenizer, nullptr);
  const absl::StatusOr<TokenizedText> text = tokenizer->Tokenize("the", {.max_tokens = 3});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->segment_ids, testing::ElementsAre(0, 0, 1));
}

// Each would take minutes if anything were quadratic; the test's time limit is the judge.
TEST(FamiliesTest, HostileTextsTakeNoTime) {
  const json families = ReadFamilyFile("ids.json");
  std::string long_word(1 << 18, 'a');
  for (const auto& [name, ids] : families.items()) {
    const auto tokenizer = LoadFromContents(ReadFamilyFile(name + ".json").dump());
    ASSERT_NE(tokenizer, nullptr);
    Ids(*tokenizer, long_word);
    Ids(*tokenizer, std::string(1 << 18, ' '));
    Ids(*tokenizer, absl::StrCat(std::string(1 << 18, '\n'), "x"));
    Ids(*tokenizer, absl::StrReplaceAll(long_word, {{"a", "\xCC\x81"}}));
  }
}

// Every value of every file, replaced by every other kind of value: no crash.
TEST(FamiliesTest, AnyValueMayBeAnything) {
  const std::vector<json> values = {nullptr,          true,          -1, 1e300, "x",
                                    json::array({1}), json::object()};
  const TempDirectory directory;
  const json families = ReadFamilyFile("ids.json");
  int refused = 0;
  for (const auto& [name, ids] : families.items()) {
    const json valid = ReadFamilyFile(name + ".json");
    size_t index = 0;
    const json flat = valid.flatten();
    for (const auto& [pointer, original] : flat.items()) {
      const bool one_of_many = pointer.find("/model/vocab/") == 0 ||
                               pointer.find("/model/merges/") == 0 ||
                               pointer.find("/added_tokens/") == 0;
      if (one_of_many && ++index % 97 != 0) continue;
      for (const json& value : values) {
        json file = valid;
        file[json::json_pointer(pointer)] = value;
        WriteFile(directory / "tokenizer.json", file.dump());
        const auto tokenizer = LoadTokenizer(directory.path());
        refused += !tokenizer.ok();
        if (tokenizer.ok()) Ids(**tokenizer, "lower newer\xC3\xA9 12 <mask>");
      }
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace attendant
