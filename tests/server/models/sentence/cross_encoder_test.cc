// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/cross_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/models/sentence_settings.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kModules[] =
    R"([{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}])";
const std::string kTanh = R"("torch.nn.modules.activation.Tanh")";

// As sentence-transformers 6 saves a CrossEncoder, without config.json and weights.
void WriteFolder(const TempDirectory& directory, const std::string& more,
                 const std::string& type = "CrossEncoder") {
  WriteFile(directory / "modules.json", kModules);
  WriteFile(directory / "config_sentence_transformers.json",
            absl::StrCat(R"({"model_type": ")", type, R"(")", more, "}"));
}

absl::StatusOr<ScoreActivation> ReadScores(const TempDirectory& directory) {
  std::optional<SequenceClassifier> classifier = SequenceClassifier{};
  const absl::Status status =
      ReadCrossEncoder({.root = directory.path(), .encoder = directory.path()}, classifier);
  if (!status.ok()) return status;
  return classifier->scores;
}

absl::StatusOr<ScoreActivation> ReadScores(const std::string& more) {
  const TempDirectory directory;
  WriteFolder(directory, more);
  return ReadScores(directory);
}

TEST(CrossEncoderTest, ItsFolderNamesTheActivation) {
  const std::pair<const char*, ScoreActivation> cases[] = {
      {R"(, "activation_fn": "torch.nn.modules.linear.Identity", "default_prompt_name": null,
          "prompts": {})",
       ScoreActivation::kNone},
      {R"(, "activation_fn": "torch.nn.modules.activation.Sigmoid")", ScoreActivation::kSigmoid},
      {R"(, "prompts": {"query": "find: "})", ScoreActivation::kSoftmax},
      {R"(, "prompts": {"query": ""}, "default_prompt_name": "query")", ScoreActivation::kSoftmax},
  };
  for (const auto& [more, scores] : cases) {
    const auto read = ReadScores(std::string(more));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, scores) << more;
  }
}

TEST(CrossEncoderTest, RefusesWhatItWouldNotCompute) {
  const std::pair<std::string, const char*> cases[] = {
      {absl::StrCat(", \"activation_fn\": ", kTanh), "`activation_fn` is `torch"},
      {R"(, "prompts": {"query": "find: "}, "default_prompt_name": "query")",
       "`default_prompt_name` is `query`"}};
  for (const auto& [more, message] : cases) {
    const absl::Status status = ReadScores(more).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("config_sentence_transformers.json"));
  }
  const TempDirectory directory;
  WriteFolder(directory, "");
  std::optional<SequenceClassifier> none;
  const absl::Status status =
      ReadCrossEncoder({.root = directory.path(), .encoder = directory.path()}, none);
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("`architectures`"));
}

TEST(CrossEncoderTest, OtherFoldersKeepTheirActivation) {
  const TempDirectory without_modules;
  EXPECT_EQ(*ReadScores(without_modules), ScoreActivation::kSoftmax);
  const TempDirectory other;
  WriteFolder(other, absl::StrCat(", \"activation_fn\": ", kTanh), "SentenceTransformer");
  EXPECT_EQ(*ReadScores(other), ScoreActivation::kSoftmax);
  EXPECT_THAT(
      std::string(
          ReadSentenceSettings(*FindModelFolder(other.path()), 384, 512).status().message()),
      HasSubstr("no Pooling step"));
  const TempDirectory pooled;
  WriteFolder(pooled, absl::StrCat(", \"activation_fn\": ", kTanh));
  WriteFile(pooled / "modules.json",
            R"([{"type": "sentence_transformers.Transformer"},
      {"type": "sentence_transformers.Pooling", "path": "1_Pooling"}])");
  EXPECT_EQ(*ReadScores(pooled), ScoreActivation::kSoftmax);
}

TEST(CrossEncoderTest, ItsChainNeedsNoPooling) {
  const TempDirectory directory;
  WriteFolder(directory, "");
  const auto settings = ReadSentenceSettings(*FindModelFolder(directory.path()), 384, 512);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->embedding_dims(384), 384);
}

}  // namespace
}  // namespace attendant
