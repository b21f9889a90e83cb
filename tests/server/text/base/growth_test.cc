// SPDX-License-Identifier: Apache-2.0
// Files that make texts grow: refused when they are loaded, or bounded when a text comes.
#include "server/text/base/growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/text/base/aligned_text.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_json.h"
#include "server/text/unicode/utf8.h"
#include "tests/server/text/family_files.h"
#include "tests/support/bert_tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSixteen = "aaaaaaaaaaaaaaaa";

json Replace(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json Sequence(const std::string& list, size_t count, const json& step) {
  return {{"type", "Sequence"}, {list, std::vector<json>(count, step)}};
}

// A file with one part more.
json With(const std::string& part, const json& value) {
  json file = json::parse(
      R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}})");
  file[part] = value;
  return file;
}

absl::Status StatusOf(const json& file) {
  const absl::StatusOr<TokenizerParts> parts = ParseTokenizerJson(file.dump());
  return parts.ok() ? parts->decoder.status() : parts.status();
}

void ExpectRefused(const json& file, const std::string& part, const std::string& problem) {
  const absl::Status status = StatusOf(file);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(part), HasSubstr(problem)));
}

TEST(GrowthTest, StepsThatMultiplyATextAreRefused) {
  const json normalizers[] = {Replace("a", "aa"),
                              {{"type", "NFKD"}},
                              {{"type", "Lowercase"}},
                              {{"type", "Prepend"}, {"prepend", "a"}}};
  for (const json& step : normalizers) {
    ExpectRefused(With("normalizer", Sequence("normalizers", 64, step)), "normalizer",
                  "times as long, the limit is 256");
  }
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  ExpectRefused(With("pre_tokenizer", Sequence("pretokenizers", 64, byte_level)), "pre_tokenizer",
                "times as long, the limit is 16");
  ExpectRefused(With("decoder", Sequence("decoders", 64, Replace("a", "aa"))), "decoder",
                "times as long, the limit is 4");
}

TEST(GrowthTest, SequencesInSequencesHaveNoMoreSteps) {
  const json half = Sequence("normalizers", 32, Replace("a", "b"));
  EXPECT_TRUE(StatusOf(With("normalizer", Sequence("normalizers", 2, half))).ok());
  ExpectRefused(With("normalizer", Sequence("normalizers", 3, half)), "normalizer",
                "96 steps in all, the limit is 64");
}

TEST(GrowthTest, TheLimitIsAllowed) {
  EXPECT_TRUE(
      StatusOf(With("normalizer", Sequence("normalizers", 2, Replace("a", kSixteen)))).ok());
  EXPECT_TRUE(StatusOf(With("decoder", Replace("a", "bbbb"))).ok());
  ExpectRefused(With("decoder", Replace("a", "bbbbb")), "decoder", "5 times as long");
  // Of patterns of two bytes.
  EXPECT_TRUE(StatusOf(With("decoder", Replace("ab", "bbbbbbbb"))).ok());
  EXPECT_TRUE(StatusOf(With("decoder", Replace("\xC3\xA9", "bbbbbbbb"))).ok());
}

TEST(GrowthTest, RealFilesStayBelow) {
  const json honest[] = {
      With("normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}}, Replace(" ", "\u2581")}}}),
      With("normalizer", {{"type", "Sequence"},
                          {"normalizers",
                           {{{"type", "NFKC"}}, {{"type", "Lowercase"}}, Replace(" ", "\u2581")}}}),
      With("decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}),
      With("decoder",
           {{"type", "Sequence"},
            {"decoders",
             {Replace("\u2581", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}})};
  for (const json& file : honest) EXPECT_TRUE(StatusOf(file).ok()) << StatusOf(file);
}

// What each step says of itself, of every character.
TEST(GrowthTest, NoCharacterGrowsMoreThanItsStepSays) {
  const json steps[] = {{{"type", "NFC"}},
                        {{"type", "NFD"}},
                        {{"type", "NFKC"}},
                        {{"type", "NFKD"}},
                        {{"type", "Lowercase"}},
                        {{"type", "BertNormalizer"},
                         {"clean_text", true},
                         {"lowercase", true},
                         {"handle_chinese_chars", true},
                         {"strip_accents", true}}};
  for (const json& step : steps) {
    const absl::StatusOr<TokenizerParts> parts =
        ParseTokenizerJson(With("normalizer", step).dump());
    ASSERT_TRUE(parts.ok()) << parts.status();
    const double times = parts->normalizer->growth().times;
    double most = 0;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      std::string text, normalized;
      AppendUtf8(c, text);
      parts->normalizer->Append(text, normalized.max_size(), normalized);
      most =
          std::max(most, static_cast<double>(normalized.size()) / static_cast<double>(text.size()));
    }
    EXPECT_LE(most, times) << step;
    EXPECT_GT(most, times / 2) << step;
  }
}

void ExpectTooLong(const json& file, const std::string& text, bool too_long) {
  const auto tokenizer = LoadFromContents(file.dump());
  ASSERT_NE(tokenizer, nullptr);
  for (const OffsetUnit unit : {OffsetUnit::kNone, OffsetUnit::kBytes}) {
    const absl::StatusOr<TokenizedText> tokenized =
        tokenizer->Tokenize(text, {.max_tokens = INT32_MAX, .offsets = unit});
    EXPECT_EQ(tokenized.ok(), !too_long) << tokenized.status();
    if (!too_long) continue;
    EXPECT_EQ(tokenized.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(tokenized.status().message()),
                HasSubstr("3 times its bytes and 65536"));
  }
}

// 16 * n <= 3 * n + 65536 up to n = 5041.
TEST(GrowthTest, ATextGrowsToItsLimit) {
  const json replacing = {
      {"type", "Sequence"},
      {"normalizers", {Replace("a", kSixteen), Replace("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb")}}};
  const json file = With("normalizer", replacing);
  const size_t most = 65536 / 13;
  ExpectTooLong(file, std::string(most, 'a'), false);
  ExpectTooLong(file, std::string(most + 1, 'a'), true);
  ExpectTooLong(file, std::string(100'000, 'a'), true);
  ExpectTooLong(file, std::string(100'000, 'b'), false);
}

TEST(GrowthTest, EveryStepStopsAtTheLimit) {
  std::string ligatures;  // U+FDFA, 11 times as long in NFKC
  for (int i = 0; i < 50'000; ++i) ligatures += "\uFDFA";
  const std::string dotted(200'000, 'x');
  for (const char* form : {"NFKC", "NFKD"})
    ExpectTooLong(With("normalizer", {{"type", form}}), ligatures, true);
  ExpectTooLong(With("normalizer", {{"type", "NFC"}}), ligatures, false);
  ExpectTooLong(With("normalizer", Replace("x", "four")), dotted, true);
  ExpectTooLong(With("normalizer", Replace("x", "two")), dotted, false);
}

// A precompiled_charsmap that makes U+0344, two bytes, 12 letters.
std::string LongMark() {
  std::vector<uint32_t> units(1024);
  const auto edge = [&](size_t base, uint32_t label, size_t next, bool has_leaf) {
    const size_t at = base ^ label;
    units[at] = static_cast<uint32_t>(at ^ next) << 10 | (has_leaf ? 1u << 8 : 0) | label;
  };
  edge(0, 0, 512, false);
  edge(512, 0xCD, 256, false);
  edge(256, 0x84, 128, true);
  units[128] = 1u << 31;  // the replacement at byte 0
  std::string bytes(4 + 4 * units.size(), '\0');
  const auto size = static_cast<uint32_t>(4 * units.size());
  std::memcpy(bytes.data(), &size, 4);
  std::memcpy(bytes.data() + 4, units.data(), size);
  return absl::Base64Escape(bytes + "abcdefghijkl");
}

// Not behind the text: a hostile one would take its memory first.
TEST(GrowthTest, AStepStopsSoonBehindTheLimit) {
  constexpr size_t kMost = 1000, kBeyond = 200, kCharacters = 50'000;
  std::string marks = "a";  // one grapheme cluster
  for (size_t i = 0; i < kCharacters; ++i) marks += "\u0344";
  const auto repeat = [](const std::string& character) {
    std::string text;
    for (size_t i = 0; i < kCharacters; ++i) text += character;
    return text;
  };
  const std::pair<json, std::string> cases[] = {
      {{{"type", "NFKC"}}, repeat("\uFDFA")},
      {{{"type", "NFKD"}}, repeat("\uFDFA")},
      {{{"type", "NFD"}}, repeat("\uAC01")},
      {{{"type", "NFC"}}, repeat("\u0958")},
      {Replace("x", "four"), repeat("x")},
      {{{"type", "Lowercase"}}, repeat("\u0130")},
      {{{"type", "Precompiled"}, {"precompiled_charsmap", LongMark()}}, marks},
      {{{"type", "BertNormalizer"},
        {"clean_text", true},
        {"lowercase", true},
        {"handle_chinese_chars", true},
        {"strip_accents", false}},
       repeat("\u4e2d")}};
  for (const auto& [step, text] : cases) {
    const absl::StatusOr<TokenizerParts> parts =
        ParseTokenizerJson(With("normalizer", step).dump());
    ASSERT_TRUE(parts.ok()) << parts.status();
    std::string normalized;
    parts->normalizer->Append(text, kMost, normalized);
    EXPECT_GT(normalized.size(), kMost) << step;
    EXPECT_LT(normalized.size(), kMost + kBeyond) << step;
    AlignedText aligned(text, 0, kMost);
    parts->normalizer->Align(aligned);
    EXPECT_GT(aligned.text().size(), kMost) << step;
    EXPECT_LT(aligned.text().size(), kMost + kBeyond) << step;
  }
}

// Parts between added tokens share one limit.
TEST(GrowthTest, PartsOfATextShareTheLimit) {
  json file = With("normalizer", {{"type", "Prepend"}, {"prepend", kSixteen}});
  file["added_tokens"] = json::array({AddedTokenJson("|", 2, true)});
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "b|";
  ExpectTooLong(file, text, true);
  ExpectTooLong(file, text.substr(0, 6000), false);
}

// Pieces times ids: 4 MB could ask for 50 billion parts.
TEST(GrowthTest, ATemplateStopsAtItsLimit) {
  const auto parse = [](size_t num_ids, size_t num_pieces) {
    const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const json special = {{"SpecialToken", {{"id", "x"}, {"type_id", 0}}}};
    json single = json::array({text});
    for (size_t i = 0; i < num_pieces; ++i) single.push_back(special);
    const json token = {{"id", "x"}, {"ids", std::vector<int>(num_ids, 1)}, {"tokens", {"x"}}};
    return ParseTokenizerJson(With("post_processor", {{"type", "TemplateProcessing"},
                                                      {"single", single},
                                                      {"special_tokens", {{"x", token}}}})
                                  .dump());
  };
  const auto most = parse(91, 45);  // and the text: 4,096
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->sequence.single.size(), 4096u);
  for (const auto& [num_ids, num_pieces] : {std::pair(4096, 1), std::pair(1, 4096)}) {
    const absl::Status status = parse(num_ids, num_pieces).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("single makes more than 4096 tokens"));
  }
}

TEST(GrowthTest, AddedTokensGrowToALimitToo) {
  const auto load = [](int num_tokens) {
    json file = With("normalizer", Replace("b", kSixteen));
    for (int i = 0; i < num_tokens; ++i) {
      file["added_tokens"].push_back(
          AddedTokenJson(std::string(1000, 'b') + std::to_string(i), 2 + i, false));
    }
    const TempDirectory directory;
    WriteFile(directory / "tokenizer.json", file.dump());
    return LoadTokenizer(directory.path()).status();
  };
  EXPECT_TRUE(load(4).ok()) << load(4);
  const absl::Status status = load(8);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the added tokens of 8008 bytes"));
}

}  // namespace
}  // namespace attendant
