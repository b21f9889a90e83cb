// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/bert_tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int32_t kUnk = 0, kCls = 1, kSep = 2, kA = 3, kB = 4, kNewYork = 6;

// The text is of segment 1, the last token of segment 2.
json File() {
  json file = BertTokenizerJson({"[UNK]", "[CLS]", "[SEP]", "a", "b", "##a"});
  file["truncation"] = {{"max_length", 3}, {"strategy", "LongestFirst"}, {"stride", 0}};
  file["padding"] = json::parse(R"({
    "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
    "pad_type_id": 0, "pad_token": "[PAD]"})");
  json& single = file["post_processor"]["single"];
  single[1]["Sequence"]["type_id"] = 1;
  single[2]["SpecialToken"]["type_id"] = 2;
  return file;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& contents) {
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", contents);
  return LoadTokenizer(directory.path());
}

std::unique_ptr<Tokenizer> MustLoad(const json& file = File()) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Load(file.dump());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::vector<int32_t> Ids(const Tokenizer& tokenizer, const std::string& text,
                         int64_t max_tokens = 1000) {
  const absl::StatusOr<TokenizedText> tokenized =
      tokenizer.Tokenize(text, {.max_tokens = max_tokens});
  EXPECT_TRUE(tokenized.ok()) << tokenized.status();
  return tokenized.ok() ? tokenized->token_ids : std::vector<int32_t>();
}

std::string Repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(TokenizerTest, PutsSpecialTokensAndSegmentsAroundTheText) {
  const auto tokenizer = MustLoad();
  EXPECT_EQ(tokenizer->vocab(), 6);
  const absl::StatusOr<TokenizedText> tokenized =
      tokenizer->Tokenize("A b[SEP]x", {.max_tokens = 9});
  ASSERT_TRUE(tokenized.ok()) << tokenized.status();
  EXPECT_THAT(tokenized->token_ids, ElementsAre(kCls, kA, kB, kSep, kUnk, kSep));
  EXPECT_THAT(tokenized->segment_ids, ElementsAre(0, 1, 1, 1, 1, 2));
  EXPECT_FALSE(tokenized->truncated());
}

TEST(TokenizerTest, ATextWithoutSpecialTokensKeepsItsSegment) {
  const auto tokenizer = MustLoad();
  const absl::StatusOr<TokenizedText> tokenized =
      tokenizer->Tokenize("a b", {.max_tokens = 2, .special_tokens = false});
  ASSERT_TRUE(tokenized.ok()) << tokenized.status();
  EXPECT_THAT(tokenized->token_ids, ElementsAre(kA, kB));
  EXPECT_THAT(tokenized->segment_ids, ElementsAre(1, 1));
}

TEST(TokenizerTest, TheFilesOwnTruncationAndPaddingDoNotCount) {
  EXPECT_THAT(Ids(*MustLoad(), "a b a b"), ElementsAre(kCls, kA, kB, kA, kB, kSep));
}

TEST(TokenizerTest, TheFilesTruncationSaysTheSide) {
  json file = File();
  EXPECT_EQ(MustLoad(file)->truncation_side(), TruncationSide::kRight);
  file["truncation"]["direction"] = "Left";
  EXPECT_EQ(MustLoad(file)->truncation_side(), TruncationSide::kLeft);
  file["truncation"]["direction"] = "Right";
  EXPECT_EQ(MustLoad(file)->truncation_side(), TruncationSide::kRight);
  file["truncation"]["direction"] = "left";
  EXPECT_THAT(Load(file.dump()).status().ToString(),
              HasSubstr("truncation.direction is neither Left nor Right"));
  file["truncation"] = nullptr;
  EXPECT_EQ(MustLoad(file)->truncation_side(), TruncationSide::kRight);
}

TEST(TokenizerTest, AnEmptyTextIsItsSpecialTokens) {
  const auto tokenizer = MustLoad();
  EXPECT_THAT(Ids(*tokenizer, ""), ElementsAre(kCls, kSep));
  EXPECT_THAT(Ids(*tokenizer, " \t\n"), ElementsAre(kCls, kSep));
}

TEST(TokenizerTest, TruncatesOnTheRight) {
  const auto tokenizer = MustLoad();
  const auto expect = [&](int64_t max_tokens, const std::vector<int32_t>& ids, bool truncated) {
    const absl::StatusOr<TokenizedText> tokenized =
        tokenizer->Tokenize("a b aa ", {.max_tokens = max_tokens});
    ASSERT_TRUE(tokenized.ok()) << tokenized.status();
    EXPECT_EQ(tokenized->token_ids, ids);
    EXPECT_EQ(tokenized->segment_ids.size(), ids.size());
    EXPECT_EQ(tokenized->truncated(), truncated) << max_tokens;
  };
  expect(7, {kCls, kA, kB, kA, 5, kSep}, false);
  expect(6, {kCls, kA, kB, kA, 5, kSep}, false);
  expect(5, {kCls, kA, kB, kA, kSep}, true);
  expect(3, {kCls, kA, kSep}, true);
  expect(2, {kCls, kSep}, true);
}

TEST(TokenizerTest, TellsTheTokensBeforeTheCut) {
  const auto tokenizer = MustLoad();
  for (const int64_t max_tokens : {2, 4, 100}) {
    const auto tokenized = tokenizer->Tokenize(Repeat("a ", 50), {.max_tokens = max_tokens});
    ASSERT_TRUE(tokenized.ok()) << tokenized.status();
    EXPECT_EQ(tokenized->tokens_seen, 52);
    EXPECT_EQ(tokenized->token_ids.size(), static_cast<size_t>(std::min<int64_t>(max_tokens, 52)));
    EXPECT_EQ(tokenized->truncated(), max_tokens < 52);
  }
}

TEST(TokenizerTest, WithoutACountALongTextIsReadAsFarAsItIsKept) {
  const auto tokenizer = MustLoad();
  const std::string text = Repeat("a ", 50);
  for (const int64_t max_tokens : {2, 4, 52, 100}) {
    const auto counted = tokenizer->Tokenize(text, {.max_tokens = max_tokens});
    const auto tokenized = tokenizer->Tokenize(text, {.max_tokens = max_tokens, .count = false});
    ASSERT_TRUE(counted.ok() && tokenized.ok()) << counted.status() << tokenized.status();
    EXPECT_EQ(tokenized->token_ids, counted->token_ids);
    EXPECT_EQ(tokenized->truncated(), counted->truncated());
    EXPECT_EQ(tokenized->tokens_seen, std::min<int64_t>(max_tokens + 1, 52));
  }
}

TEST(TokenizerTest, TruncatesOnTheLeft) {
  const auto tokenizer = MustLoad();
  const auto ids = [&](int64_t max_tokens) {
    const auto tokenized =
        tokenizer->Tokenize("a b aa ", {.max_tokens = max_tokens, .side = TruncationSide::kLeft});
    EXPECT_TRUE(tokenized.ok()) << tokenized.status();
    return tokenized.ok() ? tokenized->token_ids : std::vector<int32_t>();
  };
  EXPECT_THAT(ids(6), ElementsAre(kCls, kA, kB, kA, 5, kSep));
  EXPECT_THAT(ids(5), ElementsAre(kCls, kB, kA, 5, kSep));
  EXPECT_THAT(ids(3), ElementsAre(kCls, 5, kSep));
  EXPECT_THAT(ids(2), ElementsAre(kCls, kSep));
}

// Of a text that is much longer, only the ids of one end are kept on the way.
TEST(TokenizerTest, ALongTextIsCutLikeAShortOne) {
  json file = File();
  file["post_processor"]["pair"] = {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                                    {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}};
  const auto tokenizer = MustLoad(file);
  const std::string text = Repeat("a b b ", 5'000);
  for (const TruncationSide side : {TruncationSide::kRight, TruncationSide::kLeft}) {
    const auto whole = tokenizer->Tokenize(text, {.max_tokens = 20'000});
    const auto cut =
        tokenizer->Tokenize(text, {.max_tokens = 102, .side = side, .offsets = OffsetUnit::kBytes});
    ASSERT_TRUE(whole.ok() && cut.ok());
    EXPECT_EQ(cut->tokens_seen, 15'002);
    ASSERT_EQ(cut->token_ids.size(), 102u);
    const size_t first = side == TruncationSide::kRight ? 0 : 14'900;
    for (size_t i = 1; i < 101; ++i) {
      EXPECT_EQ(cut->token_ids[i], whole->token_ids[first + i]);
      EXPECT_EQ(cut->offsets[i].begin, 2 * (first + i - 1));
    }
    const auto pair = tokenizer->TokenizePair(text, "b b", {.max_tokens = 10, .side = side});
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->tokens_seen, 15'002);
    EXPECT_EQ(pair->token_ids, side == TruncationSide::kRight
                                   ? (std::vector<int32_t>{3, 4, 4, 3, 4, 4, 3, 4, 4, 4})
                                   : (std::vector<int32_t>{4, 4, 3, 4, 4, 3, 4, 4, 4, 4}));
  }
}

TEST(TokenizerTest, TheSecondTextOfAPairMayHaveALimitOfItsOwn) {
  json file = File();
  file["post_processor"]["pair"] = {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                                    {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}};
  const auto tokenizer = MustLoad(file);
  const auto pair = [&](const std::string& second, TokenizerOptions options) {
    const auto tokenized = tokenizer->TokenizePair("a a a", second, options);
    EXPECT_TRUE(tokenized.ok()) << tokenized.status();
    return tokenized.ok() ? *tokenized : TokenizedText();
  };
  const TokenizedText cut =
      pair("b a b", {.max_tokens = 5, .truncate = false, .max_second_tokens = 2});
  EXPECT_THAT(cut.token_ids, ElementsAre(kA, kA, kA, kB, kA));
  EXPECT_EQ(cut.tokens_seen, 5) << "as if there were no more";
  const std::string text = Repeat("b ", 5'000);  // most of its ids are dropped as they come
  EXPECT_EQ(pair(text, {.max_tokens = 4, .max_second_tokens = 4'000}).tokens_seen, 4'003);
  EXPECT_EQ(pair(text, {.max_tokens = 4, .max_second_tokens = 6'000}).tokens_seen, 5'003);
  EXPECT_THAT(pair(text, {.max_tokens = 5, .max_second_tokens = 1}).token_ids,
              ElementsAre(kA, kA, kA, kB));
}

TEST(TokenizerTest, APromptGoesBeforeTheText) {
  const auto tokenizer = MustLoad();
  const auto ids = [&](const std::string& text, const std::string& prompt, int64_t max_tokens) {
    const auto tokenized = tokenizer->Tokenize(text, {.max_tokens = max_tokens, .prompt = prompt});
    EXPECT_TRUE(tokenized.ok()) << tokenized.status();
    return tokenized.ok() ? tokenized->token_ids : std::vector<int32_t>();
  };
  EXPECT_THAT(ids("a", "b ", 9), ElementsAre(kCls, kB, kA, kSep));
  EXPECT_THAT(ids("a", "a", 9), ElementsAre(kCls, kA, 5, kSep));
  EXPECT_THAT(ids("a a", "b ", 4), ElementsAre(kCls, kB, kA, kSep));
  EXPECT_EQ(
      std::string(
          tokenizer->Tokenize("a\xFF", {.max_tokens = 9, .prompt = "bb "}).status().message()),
      "invalid UTF-8 at byte 1");
}

TEST(TokenizerTest, RefusesALongTextWithTruncationOff) {
  const auto tokenizer = MustLoad();
  EXPECT_TRUE(tokenizer->Tokenize("a b", {.max_tokens = 4, .truncate = false}).ok());
  const absl::Status status =
      tokenizer->Tokenize("a b", {.max_tokens = 3, .truncate = false}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "the text has 4 tokens, the limit is 3");
}

TEST(TokenizerTest, RefusesALimitBelowTheSpecialTokens) {
  for (const int64_t max_tokens : {int64_t{1}, int64_t{0}, int64_t{-7}, INT64_MIN}) {
    const absl::Status status = MustLoad()->Tokenize("a", {.max_tokens = max_tokens}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the special tokens alone are 2"));
  }
  EXPECT_THAT(Ids(*MustLoad(), "a", INT64_MAX), ElementsAre(kCls, kA, kSep));
}

TEST(TokenizerTest, RefusesInvalidUtf8EvenBehindTheCut) {
  const std::string text = Repeat("a ", 5000) + "\xED\xA0\x80";
  const absl::Status status = MustLoad()->Tokenize(text, {.max_tokens = 4}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "invalid UTF-8 at byte 10000");
}

TEST(TokenizerTest, FindsNormalizedTokensInNormalizedText) {
  json file = File();
  file["added_tokens"].push_back(AddedTokenJson("New York", kNewYork, false));
  const auto tokenizer = MustLoad(file);
  EXPECT_EQ(tokenizer->vocab(), 7);
  EXPECT_THAT(Ids(*tokenizer, "a N\xC3\x89W\tyork b"), ElementsAre(kCls, kA, kNewYork, kB, kSep));
  // Found wherever it stands in a long text: nothing is cut in two.
  const std::string text = Repeat("new york ", 3000);
  EXPECT_EQ(Ids(*tokenizer, text, 10000), [] {
    std::vector<int32_t> ids(3002, kNewYork);
    ids.front() = kCls;
    ids.back() = kSep;
    return ids;
  }());
}

// Also a special one, which is then no special token's text and is not skipped.
TEST(TokenizerTest, DecodesNormalizedTokensAsTheNormalizerMakesThem) {
  constexpr int32_t kEnd = 7, kRaw = 8;
  json file = File();
  file["added_tokens"].push_back(AddedTokenJson("New York", kNewYork, false));
  file["added_tokens"].push_back(AddedTokenJson("END", kEnd, true));
  file["added_tokens"].back()["normalized"] = true;
  file["added_tokens"].push_back(AddedTokenJson("RAW", kRaw, true));
  file["model"]["vocab"]["##a"] = kRaw;  // a gap: the next id for an added token is as before
  const auto tokenizer = MustLoad(file);
  const std::vector<int32_t> ids = {kCls, kNewYork, kA, kEnd, kRaw};
  EXPECT_EQ(*tokenizer->Decode(ids, false), "[CLS] new york a end RAW");
  EXPECT_EQ(*tokenizer->Decode(ids, true), "new york a end");
  EXPECT_EQ(tokenizer->DecodedString(kNewYork), "new york");
  EXPECT_EQ(tokenizer->TokenString(kNewYork), "New York");
}

TEST(TokenizerTest, RefusesTokensThatNormalizeToTheSame) {
  json file = File();
  file["added_tokens"].push_back(AddedTokenJson("Same", 6, false));
  file["added_tokens"].push_back(AddedTokenJson("SAME", 7, false));
  const absl::Status status = Load(file.dump()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'same' is there twice"));
}

TEST(TokenizerTest, AWordAcrossChunksStaysWhole) {
  const auto tokenizer = MustLoad();
  for (int spaces = 4085; spaces < 4105; ++spaces) {
    const std::string text = std::string(static_cast<size_t>(spaces), ' ') + "aaaa b";
    EXPECT_THAT(Ids(*tokenizer, text), ElementsAre(kCls, kA, 5, 5, 5, kB, kSep)) << spaces;
  }
}

// Each of these would take minutes if anything were quadratic; the test's time limit is the judge.
TEST(TokenizerTest, HostileTextsTakeLinearTime) {
  const auto tokenizer = MustLoad();
  const int64_t kMany = int64_t{1} << 40;
  EXPECT_THAT(Ids(*tokenizer, Repeat("a", 4 << 20), kMany), ElementsAre(kCls, kUnk, kSep));
  EXPECT_EQ(Ids(*tokenizer, Repeat("[SEP]", 1 << 20), kMany).size(), (1u << 20) + 2);
  EXPECT_EQ(Ids(*tokenizer, Repeat("[SEP", 1 << 20), kMany).size(), (2u << 20) + 2);
  EXPECT_THAT(Ids(*tokenizer, "a" + Repeat("\xCC\x81", 2 << 20), kMany),
              ElementsAre(kCls, kA, kSep));
  EXPECT_THAT(Ids(*tokenizer, Repeat("\xE3\x80\xAE\xE3\x80\xAF", 1 << 20), kMany),
              ElementsAre(kCls, kUnk, kSep));
  EXPECT_THAT(Ids(*tokenizer, Repeat(" ", 4 << 20), 16), ElementsAre(kCls, kSep));
  EXPECT_EQ(Ids(*tokenizer, Repeat("\xE4\xB8\xAD", 1 << 20), 16).size(), 16u);
}

TEST(TokenizerTest, TellsWhatAnIdStandsFor) {
  json file = File();
  file["added_tokens"].push_back(AddedTokenJson("New York", kNewYork, false));
  const auto tokenizer = MustLoad(file);
  EXPECT_EQ(tokenizer->TokenString(kCls), "[CLS]");
  EXPECT_EQ(tokenizer->TokenString(5), "##a");
  EXPECT_EQ(tokenizer->TokenString(kNewYork), "New York");
  EXPECT_EQ(tokenizer->TokenString(7), "");
  EXPECT_EQ(tokenizer->TokenString(-1), "");
  EXPECT_EQ(tokenizer->continuing_prefix(), "##");
  EXPECT_TRUE(tokenizer->IsSpecial(kSep));
  for (const int32_t id : {kNewYork, 5, 7, -1}) EXPECT_FALSE(tokenizer->IsSpecial(id)) << id;
}

// As sentence-transformers 6 does for do_lower_case.
TEST(LoadTokenizerTest, LowercasesBeforeTheNormalizerUnlessThatDoes) {
  const json keeps = {{"type", "BertNormalizer"},
                      {"clean_text", true},
                      {"handle_chinese_chars", true},
                      {"strip_accents", nullptr},
                      {"lowercase", false}};
  const json replaces = {
      {"type", "Replace"}, {"pattern", {{"String", "A"}}}, {"content", "b"}};  // not of "a"
  const json lowers = {{"type", "Lowercase"}};
  const auto sequence = [](const json& steps) {
    return json{{"type", "Sequence"}, {"normalizers", steps}};
  };
  const std::pair<json, int32_t> cases[] = {{nullptr, kA},
                                            {keeps, kA},
                                            {replaces, kA},
                                            {sequence(json::array({replaces})), kA},
                                            {lowers, kA},
                                            {sequence(json::array({replaces, lowers})), kB},
                                            {File()["normalizer"], kA}};
  for (const auto& [normalizer, id] : cases) {
    json file = File();
    file["normalizer"] = normalizer;
    const TempDirectory directory;
    WriteFile(directory / "tokenizer.json", file.dump());
    const auto tokenizer = LoadTokenizer(directory.path(), /*lowercases=*/true);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_THAT(Ids(**tokenizer, "A"), ElementsAre(kCls, id, kSep)) << normalizer;
  }
}

TEST(LoadTokenizerTest, NamesTheFile) {
  const TempDirectory directory;
  const absl::Status missing = LoadTokenizer(directory.path()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/tokenizer.json: no such file"));

  json file = File();
  file["model"]["type"] = "WordLevel";
  const absl::Status other = Load(file.dump()).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("tokenizer.json: model type 'WordLevel' is not supported; supported: "));
}

TEST(LoadTokenizerTest, RefusesWhatIsNotAUsableFile) {
  EXPECT_EQ(Load("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load("not json").status().code(), absl::StatusCode::kInvalidArgument);

  const TempDirectory directory;
  std::filesystem::create_directory(directory / "tokenizer.json");
  EXPECT_EQ(LoadTokenizer(directory.path()).status().code(), absl::StatusCode::kInvalidArgument);

  const absl::Status huge = Load(std::string((64 << 20) + 1, ' ')).status();
  EXPECT_EQ(huge.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(huge.message()), HasSubstr("67108865 bytes, the limit is 67108864"));
}

}  // namespace
}  // namespace attendant
