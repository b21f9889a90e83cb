// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/classifier_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kModules[] =
    R"([{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"path": "1_LogitScore",
         "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}])";

struct Folder {
  std::string modules = kModules;
  std::string module = R"({"true_token_id": 1, "false_token_id": 2})";
  std::string config{};  // more of it
  std::string architecture = "Qwen3ForCausalLM";
  std::vector<TestTensor> tensors = {FloatTensor("other", {1}, {0})};
};

absl::StatusOr<std::optional<SequenceClassifier>> Read(const Folder& folder) {
  const TempDirectory directory;
  std::filesystem::create_directory(directory / "1_LogitScore");
  WriteFile(directory / "modules.json", folder.modules);
  WriteFile(directory / "1_LogitScore/config.json", folder.module);
  WriteFile(directory / "model.safetensors", SafetensorsBytes(folder.tensors));
  const auto json = ParseJson(
      absl::StrCat(R"({"architectures": [")", folder.architecture, R"("])", folder.config, "}"),
      "config.json");
  const auto store = TensorStore::Open(directory.path());
  EXPECT_TRUE(json.ok() && store.ok());
  static constexpr float kEmbedding[] = {0, 0, 10, 20, 1, 2};
  EncoderWeights weights;
  weights.token_embedding = {kEmbedding, {3, 2}};
  return ReadWordClassifier(*json, directory.path(), weights, **store);
}

TEST(WordClassifierTest, TakesTheWordsOfTheEmbedding) {
  const auto head = Read({});
  ASSERT_TRUE(head.ok()) << head.status();
  ASSERT_TRUE(head->has_value());
  EXPECT_THAT((*head)->out.weight, ElementsAre(9, 18));
  EXPECT_EQ((*head)->num_labels(), 1);
  EXPECT_EQ((*head)->out.inputs, 2);
  EXPECT_THAT((*head)->labels, ElementsAre("LABEL_0"));
  EXPECT_EQ((*head)->pooling, Pooling::kLast);
  EXPECT_FALSE((*head)->padding_id.has_value());
  EXPECT_EQ((*head)->scores, ScoreActivation::kSigmoid);
}

TEST(WordClassifierTest, TakesOneWordOfTheHead) {
  const auto head =
      Read({.module = R"({"true_token_id": 2, "false_token_id": null})",
            .config = R"(, "sentence_transformers": {"activation_fn": "torch.nn.Identity"})",
            .architecture = "Qwen2ForCausalLM",
            .tensors = {FloatTensor("lm_head.weight", {3, 2}, {0, 0, 5, 6, 7, 8})}});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_THAT((*head)->out.weight, ElementsAre(7, 8));
  EXPECT_EQ((*head)->scores, ScoreActivation::kNone);
}

TEST(WordClassifierTest, OtherFoldersHaveNone) {
  for (const char* modules : {"[]", R"([{"type": "sentence_transformers.models.Transformer"}])",
                              R"([{"type": "sentence_transformers.models.Transformer"},
            {"type": "sentence_transformers.models.Pooling"}])"}) {
    const auto head = Read({.modules = modules});
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_FALSE(head->has_value());
  }
}

TEST(WordClassifierTest, RefusesWhatIsMissingOrNotComputed) {
  const std::pair<Folder, const char*> cases[] = {
      {{.module = R"({"true_token_id": 3})"}, "`true_token_id` is 3, it must be from 0 to 2"},
      {{.module = R"({"true_token_id": 0, "false_token_id": -1})"}, "`false_token_id` is -1"},
      {{.module = "{}"}, "true_token_id"},
      {{.module = R"({"true_token_id": 1, "module_input_name": "scores"})"},
       "`module_input_name` is `scores`"},
      {{.architecture = "Gemma3ForCausalLM"},
       "`architectures` is `Gemma3ForCausalLM`, supported is LlamaForCausalLM"},
      {{.config = R"(, "tie_word_embeddings": false)"}, "tensor `lm_head.weight` is missing"},
      {{.tensors = {FloatTensor("lm_head.weight", {2, 2}, {0, 0, 5, 6})}},
       "tensor `lm_head.weight` has shape [2, 2], the token embedding [3, 2]"},
      {{.modules = R"([{"type": "sentence_transformers.models.Transformer"},
                       {"path": "../a", "type": "sentence_transformers.x.LogitScore"}])"},
       "leaves the checkpoint's folder"}};
  for (const auto& [folder, message] : cases) {
    const absl::Status status = Read(folder).status();
    EXPECT_FALSE(status.ok()) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
