// SPDX-License-Identifier: Apache-2.0
#include "server/models/inspect/folder_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/models/inspect/fitting_tokenizer.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence_settings.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(FolderReportTest, AFolderThatCanBeServed) {
  const TempDirectory directory;
  WriteTinyModel(directory.path());
  WriteFile(directory / "config_sentence_transformers.json",
            R"({"prompts": {"query": "hello "}, "default_prompt_name": "query"})");
  const FolderReport report = InspectFolder(directory.path());
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_FALSE(report.is_module);
  EXPECT_EQ(report.model_type, "bert");
  EXPECT_THAT(report.tasks, ElementsAre("embed", "encode"));
  EXPECT_TRUE(report.takes_text);
  EXPECT_EQ(report.hidden, 16);
  EXPECT_EQ(report.embedding_dims, 16);
  EXPECT_EQ(report.pooling, "mean");
  EXPECT_TRUE(report.normalize);
  EXPECT_EQ(report.max_text_tokens, kTinyMaxTextTokens);
  EXPECT_THAT(report.prompt_names, ElementsAre("query"));
  EXPECT_EQ(report.default_prompt_name, "query");
  ASSERT_THAT(report.memory, SizeIs(3));
  EXPECT_EQ(report.memory[0].dtype, "f32");
  EXPECT_GT(report.memory[0].held_bytes, report.memory[1].held_bytes);
  EXPECT_GT(report.memory[1].peak_bytes, report.memory[1].held_bytes);
}

TEST(FolderReportTest, ClassifiersAndRerankersHaveTheirTask) {
  const FolderReport reranker = InspectFolder("tests/golden/classifier/bert_reranker");
  EXPECT_TRUE(reranker.status.ok()) << reranker.status;
  EXPECT_EQ(reranker.architecture, "BertForSequenceClassification");
  EXPECT_THAT(reranker.tasks, ElementsAre("embed", "encode", "rerank"));
  const FolderReport classifier = InspectFolder("tests/golden/classifier/roberta_classifier");
  EXPECT_THAT(classifier.tasks, ElementsAre("embed", "encode", "classify"));
  EXPECT_THAT(classifier.labels, ElementsAre("bad", "fair", "good"));
}

TEST(FolderReportTest, HeadsOnTokensHaveTheirTasks) {
  const auto tasks = [](const char* name) {
    const FolderReport report = InspectFolder(std::string("tests/golden/tokens/") + name);
    EXPECT_TRUE(report.status.ok()) << report.status;
    return report.tasks;
  };
  EXPECT_THAT(tasks("bert_splade"), ElementsAre("embed", "encode", "sparse", "fill_mask"));
  EXPECT_THAT(tasks("distilbert_splade"), ElementsAre("embed", "encode", "sparse", "fill_mask"));
  EXPECT_THAT(tasks("bge_m3"), ElementsAre("embed", "encode", "sparse", "multi_vector", "rerank"));
  EXPECT_THAT(tasks("bert_tokens"), ElementsAre("embed", "encode", "token_scores"));
  EXPECT_THAT(InspectFolder("tests/golden/tokens/bert_tokens").token_labels,
              ElementsAre("O", "B-PER", "I-PER", "B-LOC"));
}

TEST(FolderReportTest, AColbertModelHasTwoPrompts) {
  for (const char* name : {"pylate_bert", "stanford_bert"}) {
    const FolderReport report = InspectFolder(std::string("tests/golden/colbert/") + name);
    EXPECT_TRUE(report.status.ok()) << report.status;
    EXPECT_THAT(report.tasks, ElementsAre("embed", "encode", "multi_vector", "rerank"));
    EXPECT_THAT(report.prompt_names, ElementsAre("document", "query"));
    EXPECT_EQ(report.default_prompt_name, "document");
  }
}

TEST(FolderReportTest, AnInferenceFreeModelHasTwoPrompts) {
  for (const char* name : {"routed", "in_root", "idf", "weights_txt"}) {
    const FolderReport report = InspectFolder(std::string("tests/golden/routed/") + name);
    EXPECT_TRUE(report.status.ok()) << report.status;
    EXPECT_EQ(report.model_type, "bert");
    EXPECT_THAT(report.tasks, ElementsAre("embed", "encode", "sparse", "fill_mask"));
    EXPECT_THAT(report.prompt_names, ElementsAre("document", "query"));
    EXPECT_EQ(report.default_prompt_name, "document");
    ASSERT_THAT(report.memory, SizeIs(3));
  }
}

TEST(FolderReportTest, AMaskedLanguageModelBehindPoolingHasNoTask) {
  const TempDirectory directory;
  std::filesystem::copy("tests/golden/tokens/bert_splade", directory.path(),
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(directory / "1_Pooling");
  WriteFile(directory / "1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  WriteFile(directory / "modules.json",
            R"([{"type": "sentence_transformers.Transformer"},
      {"type": "sentence_transformers.Pooling", "path": "1_Pooling"}])");
  const FolderReport report = InspectFolder(directory.path());
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_THAT(report.tasks, ElementsAre("embed", "encode"));
}

TEST(FolderReportTest, AnAttentionModule) {
  const FolderReport report = InspectFolder("tests/golden/attention/mha");
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_TRUE(report.is_module);
  EXPECT_THAT(report.tasks, ElementsAre("attend"));
  EXPECT_GT(report.heads, 0);
}

TEST(FolderReportTest, AFolderWithoutATokenizerTakesIds) {
  const FolderReport report = InspectFolder("tests/golden/encoder/tiny_gelu");
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_FALSE(report.takes_text);
}

TEST(FittingTokenizerTest, LowercasesAsTheSettingsSay) {
  const TempDirectory directory;
  WriteTinyModel(directory.path());
  WriteFile(directory / "tokenizer.json", TinyTokenizer(0));
  WriteFile(directory / "tokenizer_config.json", R"({"do_lower_case": false})");
  for (const bool lowercases : {false, true}) {
    WriteFile(directory / "sentence_bert_config.json",
              absl::StrCat("{\"do_lower_case\": ", lowercases ? "true" : "false", "}"));
    const auto settings = ReadSentenceSettings(*FindModelFolder(directory.path()), 16, 64);
    ASSERT_TRUE(settings.ok()) << settings.status();
    const auto tokenizer = LoadFittingTokenizer(directory.path(), kTinyConfig, *settings);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto text = (*tokenizer)->Tokenize("HELLO", {.max_tokens = 64});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(text->token_ids, ElementsAre(kCls, lowercases ? kHello : kUnk, kSep));
  }
}

TEST(FolderReportTest, SaysWhyAFolderCannotBeServed) {
  const TempDirectory directory;
  EXPECT_EQ(InspectFolder(directory / "none").status.code(), absl::StatusCode::kNotFound);
  WriteTinyModel(directory.path());
  WriteFile(directory / "modules.json", R"([{"type": "sentence_transformers.Transformer"},
      {"type": "sentence_transformers.CNN"}])");
  const FolderReport modules = InspectFolder(directory.path());
  EXPECT_THAT(std::string(modules.status.message()), HasSubstr("step 1 is CNN"));
  EXPECT_EQ(modules.hidden, 16);
  EXPECT_THAT(modules.tasks, IsEmpty());
  std::filesystem::remove(directory / "model.safetensors");
  WriteFile(directory / "pytorch_model.bin", "pickle");
  EXPECT_THAT(std::string(InspectFolder(directory.path()).status.message()),
              HasSubstr("To convert it, run in that folder: python3"));
  WriteFile(directory / "config.json", R"({"model_type": "resnet"})");
  const FolderReport other = InspectFolder(directory.path());
  EXPECT_EQ(other.status.code(), absl::StatusCode::kUnimplemented) << other.status;
  EXPECT_EQ(other.model_type, "resnet");
}

}  // namespace
}  // namespace attendant
