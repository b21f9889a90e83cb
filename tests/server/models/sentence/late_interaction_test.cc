// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/late_interaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

absl::StatusOr<LateInteraction> ReadLate(const std::string& config, const std::string& pylate = "",
                                         const std::string& stanford = "") {
  const TempDirectory directory;
  WriteFile(directory / "config.json", config);
  if (!pylate.empty()) WriteFile(directory / "config_sentence_transformers.json", pylate);
  if (!stanford.empty()) WriteFile(directory / "artifact.metadata", stanford);
  return ReadLateInteraction(directory.path());
}

TEST(LateInteractionTest, HasPyLatesDefaults) {
  const auto late = ReadLate("{}");
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->query.marker, "[Q] ");
  EXPECT_EQ(late->document.marker, "[D] ");
  EXPECT_EQ(late->query.max_tokens, 32);
  EXPECT_EQ(late->document.max_tokens, 180);
  EXPECT_TRUE(late->has_unattended_tokens());
  EXPECT_THAT(late->skipped, SizeIs(32));
  EXPECT_EQ(ReadLate(R"({"architectures": ["HF_ColBERT"]})")->query.marker, "[unused0]");
}

TEST(LateInteractionTest, ReadsBothFiles) {
  const char* stanford = R"({"query_token_id": "[q]", "doc_token_id": "[d]", "query_maxlen": 8,
      "doc_maxlen": 9, "attend_to_mask_tokens": true, "mask_punctuation": false})";
  const auto old = ReadLate("{}", "", stanford);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->query.marker, "[q]");
  EXPECT_EQ(old->document.max_tokens, 9);
  EXPECT_TRUE(old->expands_queries);
  EXPECT_FALSE(old->has_unattended_tokens());
  EXPECT_THAT(old->skipped, IsEmpty());
  const auto both = ReadLate("{}", R"({"query_prefix": "[Q]", "document_length": 10,
      "attend_to_expansion_tokens": false, "skiplist_words": [".", "a"]})",
                             stanford);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->query.marker, "[Q]");
  EXPECT_EQ(both->document.marker, "[d]");
  EXPECT_EQ(both->query.max_tokens, 8);
  EXPECT_EQ(both->document.max_tokens, 10);
  EXPECT_TRUE(both->has_unattended_tokens());
  EXPECT_THAT(both->skipped, ElementsAre(".", "a"));
  EXPECT_FALSE(ReadLate("{}", R"({"do_query_expansion": false})")->has_unattended_tokens());
}

TEST(LateInteractionTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"query_length": "x"})", "query_length"},
      {R"({"skiplist_words": "x"})", "skiplist_words"},
      {R"({"skiplist_words": [1]})", "skiplist_words"},
      {R"({"do_query_expansion": 1})", "do_query_expansion"}};
  for (const auto& [config, message] : cases) {
    const auto late = ReadLate("{}", config);
    EXPECT_TRUE(absl::IsInvalidArgument(late.status())) << config;
    EXPECT_THAT(std::string(late.status().message()), HasSubstr(message));
    EXPECT_FALSE(ReadLate("{}", "", "[]").ok());
  }
}

// As sentence-transformers' MultiVectorEncoder saves a folder.
absl::StatusOr<LateInteraction> ReadMasked(const std::string& mask,
                                           const std::string& transformer) {
  const TempDirectory directory;
  WriteFile(directory / "modules.json",
            R"([{"type": "sentence_transformers.Transformer", "path": ""},
                {"type": "sentence_transformers.Dense", "path": "1"},
                {"type": "sentence_transformers.MultiVectorMask", "path": "2"}])");
  std::filesystem::create_directories(directory / "2");
  WriteFile(directory / "2/config.json", mask);
  if (!transformer.empty()) WriteFile(directory / "sentence_bert_config.json", transformer);
  return ReadLateInteraction(directory.path());
}

TEST(LateInteractionTest, ReadsTheLayoutOfMultiVectorEncoder) {
  const auto plain = ReadMasked("{}", "");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->query.marker + plain->document.marker, "");
  EXPECT_EQ(plain->document.max_tokens, 0);
  EXPECT_FALSE(plain->expands_queries);
  EXPECT_THAT(plain->skipped, IsEmpty());
  const char* mask = R"({"skiplist_words": [".", "a"], "skiplist_tasks": ["document"],
                         "keep_only_token_ids": null})";
  const auto fixed = ReadMasked(mask, R"({"document_length": 24, "query_expansion":
      {"strategy": "fixed", "attend": true, "token": "x", "length": 14}})");
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(fixed->skipped, ElementsAre(".", "a"));
  EXPECT_EQ(fixed->document.max_tokens, 24);
  EXPECT_EQ(fixed->query.max_tokens, 14);
  EXPECT_EQ(fixed->expanded_tokens, 14);
  EXPECT_EQ(fixed->filler, "x");
  EXPECT_FALSE(fixed->has_unattended_tokens());
  const auto least = ReadMasked(mask, R"({"query_length": 20, "query_expansion":
      {"strategy": "min", "token": null, "length": 14}})");
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->query.max_tokens, 20);
  EXPECT_EQ(least->expanded_tokens, 14);
  EXPECT_TRUE(least->has_unattended_tokens());
}

TEST(LateInteractionTest, RefusesWhatMultiVectorEncoderHasAndItDoesNot) {
  const std::pair<const char*, const char*> masks[] = {
      {R"({"skiplist_words": ["a"], "skiplist_tasks": ["query", "document"]})", "skiplist_tasks"},
      {R"({"keep_only_token_ids": [7]})", "keep_only_token_ids"},
      {R"({"skiplist_words": [1]})", "skiplist_words"}};
  for (const auto& [mask, message] : masks) {
    const auto late = ReadMasked(mask, "");
    EXPECT_THAT(std::string(late.status().message()), HasSubstr(message));
  }
  const std::pair<const char*, const char*> expansions[] = {
      {R"({"query_expansion": {"strategy": "max", "length": 4}})", "strategy"},
      {R"({"query_expansion": {"strategy": "min", "length": 0}})", "`length` is 0"},
      {R"({"query_expansion": {"strategy": "min"}})", "length"}};
  for (const auto& [transformer, message] : expansions) {
    const auto late = ReadMasked("{}", transformer);
    EXPECT_THAT(std::string(late.status().message()), HasSubstr(message));
  }
}

TEST(LateInteractionTest, IsFoundByTheHead) {
  const std::string folder = "tests/golden/colbert/pylate_bert";
  TokenHead heads[] = {{.kind = TokenHeadKind::kVectors}};
  EXPECT_EQ(*FindLateInteraction(folder, heads), std::nullopt);
  heads[0].options.late_interaction = true;
  const auto late = FindLateInteraction(folder, heads);
  ASSERT_TRUE(late.ok() && late->has_value());
  EXPECT_EQ((*late)->query.max_tokens, 14);
}

class TextFormsTest : public testing::Test {
 protected:
  // Its words are hello and world; it has no mask token.
  TextFormsTest() {
    WriteTinyModel(directory_.path());
    tokenizer_ = *LoadTokenizer(directory_.path());
    late_.query = {"hello", 8};
    late_.document = {"world", 100};
    late_.expands_queries = false;
    late_.skipped = {"world", "none", "hello", ""};
  }
  absl::Status Add(Prompts& prompts) const {
    return AddTextForms(late_, directory_.path(), *tokenizer_, 50, prompts);
  }

  const TempDirectory directory_;
  std::unique_ptr<Tokenizer> tokenizer_;
  LateInteraction late_;
};

TEST_F(TextFormsTest, AreThoseOfTwoPrompts) {
  Prompts prompts;
  prompts.by_name["query"].text = "q: ";
  ASSERT_TRUE(Add(prompts).ok());
  EXPECT_EQ(prompts.default_name, "document");
  const Prompt& query = **prompts.Find("query");
  EXPECT_EQ(query.text, "q: ");
  EXPECT_EQ(query.form->marker, kHello);
  EXPECT_EQ(query.form->max_tokens, 8);
  EXPECT_FALSE(query.form->document || query.form->filler.has_value());
  const Prompt& document = **prompts.Find(std::nullopt);
  EXPECT_EQ(document.form->marker, kWorld);
  EXPECT_EQ(document.form->max_tokens, 50) << "as many as the model takes";
  EXPECT_TRUE(document.form->document);
  EXPECT_EQ(*prompts.Find(""), nullptr);
  EXPECT_THAT(FindSkipped(late_, *tokenizer_), ElementsAre(kHello, kWorld));
}

TEST_F(TextFormsTest, AreWithoutMarkersWhereThePromptsHaveThem) {
  Prompts prompts;
  late_ = {.query = {}, .document = {}, .expanded_tokens = 60, .filler = "world"};
  ASSERT_TRUE(Add(prompts).ok());
  const TextForm& query = *(**prompts.Find("query")).form;
  EXPECT_FALSE(query.marker.has_value());
  EXPECT_EQ(query.max_tokens, 0);
  EXPECT_EQ(query.filler, kWorld);
  EXPECT_EQ(query.filled_tokens, 50) << "as many as the model takes";
  EXPECT_FALSE(query.attends_to_filler);
}

TEST_F(TextFormsTest, MaskTokensBeyondAWindowAreRefused) {
  Prompts prompts;
  EncoderConfig config;
  config.window = 6;
  config.local_layers[1] = true;
  const auto check = [&](const TextForm& form) {
    prompts.by_name["query"].form = form;
    return CheckExpansion(config, "dir", *tokenizer_, prompts);
  };
  EXPECT_TRUE(CheckExpansion(config, "dir", *tokenizer_, prompts).ok());
  // The marker and two special tokens are there without a text, at places 0 to 2.
  EXPECT_TRUE(check({.marker = 1,
                     .max_tokens = 9,
                     .filler = 2,
                     .filled_tokens = 9,
                     .attends_to_filler = false})
                  .ok());
  const absl::Status refused = check({.marker = 1,
                                      .max_tokens = 10,
                                      .filler = 2,
                                      .filled_tokens = 10,
                                      .attends_to_filler = false});
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("queries of at most 9 tokens"));
  EXPECT_TRUE(check({.marker = 1,
                     .max_tokens = 10,
                     .filler = 2,
                     .filled_tokens = 10,
                     .attends_to_filler = true})
                  .ok());
  EXPECT_TRUE(check({.marker = 1, .max_tokens = 10}).ok());
  config.local_layers.reset();
  EXPECT_TRUE(check({.marker = 1,
                     .max_tokens = 10,
                     .filler = 2,
                     .filled_tokens = 10,
                     .attends_to_filler = false})
                  .ok());
}

TEST_F(TextFormsTest, WhatIsNoTokenIsRefused) {
  Prompts prompts;
  late_.expands_queries = true;
  EXPECT_THAT(std::string(Add(prompts).message()), HasSubstr("has no mask token"));
  late_.query.marker = "[Q] ";
  EXPECT_THAT(std::string(Add(prompts).message()),
              HasSubstr("the marker `[Q] ` of a ColBERT model is no token"));
  late_.query = {"hello", 2};
  EXPECT_THAT(std::string(Add(prompts).message()),
              HasSubstr("a query has at most 2 tokens, its marker and special tokens are 3"));
}

}  // namespace
}  // namespace attendant
