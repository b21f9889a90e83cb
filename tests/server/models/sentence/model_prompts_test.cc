// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/model_prompts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/checkpoints/checkpoint.h"
#include "kernels/heads/token_head.h"
#include "server/models/sentence/head_options.h"

namespace attendant {
namespace {

struct Reading {
  bool late_interaction = false;
  bool makes_sparse = false;
  int64_t max_sequence_tokens = 50;
};

absl::StatusOr<ModelPrompts> Read(const std::string& directory, const Reading& reading) {
  const absl::StatusOr<ModelFolder> folder = FindModelFolder(directory);
  EXPECT_TRUE(folder.ok()) << folder.status();
  const absl::StatusOr<EncoderConfig> config = ReadEncoderConfig(folder->encoder);
  EXPECT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder->encoder);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<TokenHead> heads{{.kind = TokenHeadKind::kVectors}};
  heads[0].options.late_interaction = reading.late_interaction;
  const auto late = FindLateInteraction(directory, heads);
  EXPECT_TRUE(late.ok()) << late.status();
  return ReadModelPrompts({.folder = *folder,
                           .config = *config,
                           .tokenizer = **tokenizer,
                           .late = *late,
                           .makes_sparse = reading.makes_sparse,
                           .max_sequence_tokens = reading.max_sequence_tokens,
                           .max_text_tokens = 50});
}

TEST(ModelPromptsTest, FormsOfLateInteractionFitTheLongestSequence) {
  const std::string directory = "tests/golden/colbert/pylate_bert";
  const auto read = Read(directory, {.late_interaction = true});
  ASSERT_TRUE(read.ok()) << read.status();
  const Prompt& query = read->prompts.by_name.at("query");
  ASSERT_TRUE(query.form.has_value());
  EXPECT_EQ(query.form->max_tokens, 14);
  EXPECT_GT(query.tokens, 0);
  EXPECT_EQ(read->prompts.default_name, "document");
  EXPECT_FALSE(read->lookup.has_value());
  const auto cut = Read(directory, {.late_interaction = true, .max_sequence_tokens = 9});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->prompts.by_name.at("query").form->max_tokens, 9);
  const auto none = Read(directory, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->prompts.by_name.at("query").form.has_value());
}

TEST(ModelPromptsTest, QueriesAreLookedUpWhereAHeadMakesSparseVectors) {
  const std::string directory = "tests/golden/routed/routed";
  const auto sparse = Read(directory, {.makes_sparse = true});
  ASSERT_TRUE(sparse.ok()) << sparse.status();
  EXPECT_TRUE(sparse->lookup.has_value());
  EXPECT_TRUE(sparse->prompts.by_name.at("query").looks_up);
  const auto plain = Read(directory, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->lookup.has_value());
  EXPECT_FALSE(plain->prompts.by_name.at("query").looks_up);
}

TEST(AnyMakesTest, AsksTheOptionsOfHeads) {
  std::vector<TokenHead> heads{{.kind = TokenHeadKind::kTokenLabels},
                               {.kind = TokenHeadKind::kMaskedLm}};
  EXPECT_TRUE(AnyMakes(heads, TaskKind::kTokenScores));
  EXPECT_FALSE(AnyMakes(heads, TaskKind::kSparse));
  heads[1].options.splade = SpladeOptions{};
  EXPECT_TRUE(AnyMakes(heads, TaskKind::kSparse));
  EXPECT_FALSE(AnyMakes({}, TaskKind::kSparse));
}

}  // namespace
}  // namespace attendant
