// SPDX-License-Identifier: Apache-2.0
// Folders with the vocab.txt of ESM and no tokenizer.json, against transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using Files = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const Files& files) {
  TempDirectory directory;
  for (const auto& [name, content] : files) WriteFile(directory / name, content);
  return LoadTokenizer(directory.path());
}

TEST(EsmTokenizerTest, IdsAndTextsAreThoseOfTransformers) {
  std::ifstream file("tests/golden/tokenizer/esm.json");
  const json folders = json::parse(file);
  size_t compared = 0;
  for (const auto& [name, folder] : folders.items()) {
    SCOPED_TRACE(name);
    Files files;
    for (const auto& [path, content] : folder["files"].items()) files.emplace_back(path, content);
    const auto tokenizer = Load(files);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (const json& one : folder["cases"]) {
      const auto texts = one["texts"].get<std::vector<std::string>>();
      const TokenizerOptions options{.max_tokens = 1 << 20};
      const auto tokens = texts.size() == 1
                              ? (*tokenizer)->Tokenize(texts[0], options)
                              : (*tokenizer)->TokenizePair(texts[0], texts[1], options);
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(tokens->token_ids, one["ids"].get<std::vector<int32_t>>()) << one;
      EXPECT_THAT(tokens->segment_ids, testing::Each(0));
      EXPECT_EQ(*(*tokenizer)->Decode(tokens->token_ids, true), one["decoded"]) << one;
      ++compared;
    }
  }
  EXPECT_GE(compared, 250u);
}

constexpr char kVocabulary[] = "<cls>\n<pad>\n<eos>\n<unk>\nL\nA\n<mask>\n";
constexpr char kConfig[] = R"({"tokenizer_class": "EsmTokenizer"})";

TEST(EsmTokenizerTest, CountsWhereTheClassIsItsOwn) {
  const std::string other = R"({"model_type": "bert"})", own = R"({"model_type": "esm"})";
  EXPECT_TRUE(Load({{"vocab.txt", kVocabulary}, {"config.json", own}}).ok());
  EXPECT_TRUE(
      absl::IsNotFound(Load({{"vocab.txt", kVocabulary}, {"config.json", other}}).status()));
  EXPECT_TRUE(absl::IsNotFound(Load({{"config.json", own}}).status()));
  const std::string endless = R"({"tokenizer_class": "EsmTokenizer", "eos_token": null})";
  EXPECT_TRUE(
      Load({{"vocab.txt", "<cls>\n<pad>\n<unk>\n<mask>"}, {"tokenizer_config.json", endless}})
          .ok());
  const Files both = {{"vocab.txt", kVocabulary}, {"config.json", own}, {"tokenizer.json", "{}"}};
  EXPECT_TRUE(Load(both).ok()) << "transformers does not read tokenizer.json";
}

TEST(EsmTokenizerTest, WithoutAnEndThereAreNoPairs) {
  const std::string endless = R"({"tokenizer_class": "EsmTokenizer", "eos_token": null})";
  const auto tokenizer = Load({{"vocab.txt", kVocabulary}, {"tokenizer_config.json", endless}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const absl::Status status = (*tokenizer)->TokenizePair("L", "A", {.max_tokens = 9}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), "the model's tokenizer has no template for two texts");
}

TEST(EsmTokenizerTest, TokensStandWhereTheyStood) {
  const auto tokenizer = Load({{"vocab.txt", kVocabulary}, {"tokenizer_config.json", kConfig}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto tokens =
      (*tokenizer)
          ->Tokenize("L\u00e9e A<mask>", {.max_tokens = 5, .offsets = OffsetUnit::kCharacters});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(tokens->token_ids, testing::ElementsAre(0, 4, 3, 5, 2));
  EXPECT_THAT(tokens->offsets,
              testing::ElementsAre(TokenOffset{0, 0}, TokenOffset{0, 1}, TokenOffset{1, 3},
                                   TokenOffset{4, 5}, TokenOffset{0, 0}));
  EXPECT_EQ(tokens->tokens_seen, 6);
  EXPECT_TRUE((*tokenizer)->IsSpecial(6));
  EXPECT_FALSE((*tokenizer)->IsSpecial(4));
  EXPECT_EQ((*tokenizer)->vocab(), 7);
}

TEST(EsmTokenizerTest, TheNumberOfTokensIsLimited) {
  std::string vocabulary = kVocabulary;
  for (int token = 7; token < 65536; ++token) absl::StrAppend(&vocabulary, token, "\n");
  const auto most = Load({{"vocab.txt", vocabulary}, {"tokenizer_config.json", kConfig}});
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ((*most)->vocab(), 65536);
  const absl::Status status =
      Load({{"vocab.txt", vocabulary + "X"}, {"tokenizer_config.json", kConfig}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 65536 tokens, the limit"));
}

TEST(EsmTokenizerTest, RefusesWhatItCannotRead) {
  const std::string named = R"({"tokenizer_class": "EsmTokenizer", )";
  const struct {
    std::string vocabulary, config, message;
    absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  } kCases[] = {
      {"", kConfig, "line 1, ``, is empty"},
      {"\n \n<cls>\n<unk>\n<eos>", kConfig, "line 1, ``, is empty"},
      {"<cls>\n\nL", kConfig, "line 2"},
      {"<cls>\nL A", kConfig, "line 2, `L A`, has white space inside"},
      {"<cls>\nL\nL", kConfig, "line 3, `L`, is there already"},
      {"<cls>\n\xff", kConfig, "not UTF-8"},
      {"<cls>\n<pad>\n<eos>\n<mask>", kConfig, "`<unk>` is in no line"},
      {kVocabulary, named + R"("extra_special_tokens": ["B"]})", "`B` is in no line"},
      {kVocabulary, named + R"("cls_token": 5})", "cls_token"},
      {kVocabulary, named + R"("split_special_tokens": true})", "`split_special_tokens` is true",
       absl::StatusCode::kUnimplemented},
      {kVocabulary,
       named + R"("added_tokens_decoder": {"4": {"content": "L", "single_word": true}}})",
       "single_word", absl::StatusCode::kUnimplemented},
  };
  for (const auto& one : kCases) {
    const absl::Status status =
        Load({{"vocab.txt", one.vocabulary}, {"tokenizer_config.json", one.config}}).status();
    EXPECT_EQ(status.code(), one.code) << one.message << "\n" << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace attendant
