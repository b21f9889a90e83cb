// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/classifier_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr int64_t kHidden = 2;

std::vector<TestTensor> BertHead(int64_t labels) {
  const auto count = static_cast<size_t>(labels);
  return {FloatTensor("bert.pooler.dense.weight", {2, 2}, {1, 2, 3, 4}),
          FloatTensor("bert.pooler.dense.bias", {2}, {5, 6}),
          FloatTensor("classifier.weight", {labels, 2}, std::vector<float>(2 * count, 7)),
          FloatTensor("classifier.bias", {labels}, std::vector<float>(count, 8))};
}

absl::StatusOr<std::optional<SequenceClassifier>> Read(const std::string& config,
                                                       const std::vector<TestTensor>& tensors) {
  const TempDirectory directory;
  WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
  const auto json = ParseJson(config, "config.json");
  auto store = TensorStore::Open(directory.path());
  EXPECT_TRUE(json.ok() && store.ok());
  return ReadSequenceClassifier(*json, kHidden, "folder", **store);
}

std::string Config(const std::string& more,
                   const std::string& architecture = "BertForSequenceClassification") {
  return absl::StrCat(R"({"architectures": [")", architecture, R"("])", more, "}");
}

void ExpectRefused(const std::string& config, const std::vector<TestTensor>& tensors,
                   const std::string& message) {
  EXPECT_THAT(std::string(Read(config, tensors).status().message()), HasSubstr(message));
}

TEST(ClassifierHeadTest, ReadsAHeadOfBert) {
  const auto head = Read(Config(R"(, "id2label": {"0": "no", "1": "yes"})"), BertHead(2));
  ASSERT_TRUE(head.ok()) << head.status();
  ASSERT_TRUE(head->has_value());
  EXPECT_EQ((*head)->pooling, Pooling::kCls);
  EXPECT_EQ((*head)->activation, HeadActivation::kTanh);
  EXPECT_THAT((*head)->dense.weight, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT((*head)->dense.bias, ElementsAre(5, 6));
  EXPECT_EQ((*head)->num_labels(), 2);
  EXPECT_THAT((*head)->labels, ElementsAre("no", "yes"));
  EXPECT_EQ((*head)->scores, ScoreActivation::kSoftmax);
}

// With the encoder's prefix: that of transformers, and that of the code which came before it.
TEST(ClassifierHeadTest, ReadsThePoolerOfNomicAndGte) {
  const std::pair<const char*, const char*> forms[] = {
      {"NomicBertForSequenceClassification", "nomic_bert."},
      {"NomicBertForSequenceClassification", "bert."},
      {"GteForSequenceClassification", "gte."},
      {"NewForSequenceClassification", "new."}};
  for (const auto& [architecture, prefix] : forms) {
    std::vector<TestTensor> tensors = BertHead(1);
    tensors[0] = FloatTensor(absl::StrCat(prefix, "pooler.dense.weight"), {2, 2}, {1, 2, 3, 4});
    tensors[1] = FloatTensor(absl::StrCat(prefix, "pooler.dense.bias"), {2}, {5, 6});
    const auto head = Read(Config("", architecture), tensors);
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_EQ((*head)->activation, HeadActivation::kTanh);
    EXPECT_THAT((*head)->dense.weight, ElementsAre(1, 2, 3, 4));
  }
}

TEST(ClassifierHeadTest, ADecoderScoresItsLastTokenThatIsNoPadding) {
  const std::vector<TestTensor> score = {FloatTensor("score.weight", {1, 2}, {3, 4})};
  for (const char* family : {"Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3Text"}) {
    const std::string architecture = absl::StrCat(family, "ForSequenceClassification");
    const auto head = Read(Config(R"(, "pad_token_id": 7)", architecture), score);
    ASSERT_TRUE(head.ok()) << head.status();
    ASSERT_TRUE(head->has_value()) << architecture;
    EXPECT_EQ((*head)->pooling, Pooling::kLast);
    EXPECT_EQ((*head)->padding_id, 7);
    EXPECT_EQ((*head)->dense.outputs, 0);
    EXPECT_THAT((*head)->out.weight, ElementsAre(3, 4));
    EXPECT_TRUE((*head)->out.bias.empty());
    EXPECT_EQ((*head)->scores, ScoreActivation::kSigmoid);
  }
  EXPECT_EQ((*Read(Config("", "Qwen3ForSequenceClassification"), score))->padding_id, std::nullopt);
  EXPECT_EQ((*Read(Config("", "Gemma3TextForSequenceClassification"), score))->padding_id, 0);
  const char* const null_token = R"(, "pad_token_id": null)";
  EXPECT_EQ((*Read(Config(null_token, "Gemma3TextForSequenceClassification"), score))->padding_id,
            std::nullopt);
  EXPECT_EQ((*Read(Config("", "BertForSequenceClassification"), BertHead(1)))->padding_id,
            std::nullopt);
  const char* const no_token = R"(, "pad_token_id": -100)";
  EXPECT_EQ((*Read(Config(no_token, "LlamaForSequenceClassification"), score))->padding_id, -1);
  ExpectRefused(Config(R"(, "pad_token_id": "x")", "LlamaForSequenceClassification"), score,
                "`pad_token_id`");
}

TEST(ClassifierHeadTest, NvidiasHasAPoolingAndATemperature) {
  const std::vector<TestTensor> score = {FloatTensor("score.weight", {1, 2}, {3, 4})};
  const std::string name = "LlamaBidirectionalForSequenceClassification";
  const auto head = Read(Config("", name), score);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ((*head)->pooling, Pooling::kMean);
  EXPECT_EQ((*head)->padding_id, std::nullopt);
  EXPECT_THAT((*head)->out.weight, ElementsAre(3, 4));
  const auto other = Read(Config(R"(, "pooling": "last", "temperature": 0.5)", name), score);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ((*other)->pooling, Pooling::kLast);
  EXPECT_THAT((*other)->out.weight, ElementsAre(6, 8));
  EXPECT_EQ((*Read(Config(R"(, "pooling": "cls")", name), score))->pooling, Pooling::kCls);
  ExpectRefused(Config(R"(, "pooling": "weighted_avg")", name), score,
                "`pooling` is `weighted_avg`");
  ExpectRefused(Config(R"(, "temperature": 0)", name), score, "`temperature` is 0");
  ExpectRefused(Config(R"(, "temperature": 1e-300)", name), score, "`temperature` is 1e-300");
  ExpectRefused(Config(R"(, "temperature": 1e-6)", name),
                {FloatTensor("score.weight", {1, 2}, {3, 1e33f})},
                "`temperature` is 1e-06, a weight of the head divided by it does not fit in f32");
}

std::vector<TestTensor> ModernBertHead() {
  return {FloatTensor("head.dense.weight", {2, 2}, {1, 2, 3, 4}),
          FloatTensor("head.norm.weight", {2}, {1, 1}),
          FloatTensor("classifier.weight", {1, 2}, {7, 7})};
}

TEST(ClassifierHeadTest, ModernBertHasAPooling) {
  const std::string name = "ModernBertForSequenceClassification";
  EXPECT_EQ((*Read(Config("", name), ModernBertHead()))->pooling, Pooling::kCls);
  EXPECT_EQ((*Read(Config(R"(, "classifier_pooling": "mean")", name), ModernBertHead()))->pooling,
            Pooling::kMean);
  ExpectRefused(Config(R"(, "classifier_pooling": "max")", name), ModernBertHead(),
                "`classifier_pooling` is `max`");
  ExpectRefused(Config(R"(, "classifier_activation": "relu")", name), ModernBertHead(),
                "`classifier_activation` is `relu`");
}

TEST(ClassifierHeadTest, ModernBertsNormHasAnEpsilon) {
  const std::vector<TestTensor> tensors = {FloatTensor("head.dense.weight", {2, 2}, {1, 2, 3, 4}),
                                           FloatTensor("head.norm.weight", {2}, {5, 6}),
                                           FloatTensor("classifier.weight", {1, 2}, {7, 8}),
                                           FloatTensor("classifier.bias", {1}, {9})};
  const std::string architecture = "ModernBertForSequenceClassification";
  EXPECT_EQ((*Read(Config("", architecture), tensors))->norm.epsilon, 1e-5f);
  EXPECT_EQ((*Read(Config(R"(, "norm_eps": 0.25)", architecture), tensors))->norm.epsilon, 0.25f);
  for (const char* epsilon : {"0", "-1e-5", "1", "1e300"}) {
    ExpectRefused(Config(absl::StrCat(R"(, "norm_eps": )", epsilon), architecture), tensors,
                  "norm_eps");
  }
}

TEST(ClassifierHeadTest, DebertaHasTheActivationOfItsPooler) {
  std::vector<TestTensor> tensors = BertHead(1);
  tensors[0].name = "pooler.dense.weight";
  tensors[1].name = "pooler.dense.bias";
  const std::string name = "DebertaV2ForSequenceClassification";
  EXPECT_TRUE(Read(Config(R"(, "pooler_hidden_act": "gelu")", name), tensors).ok());
  ExpectRefused(Config(R"(, "pooler_hidden_act": "tanh")", name), tensors,
                "`pooler_hidden_act` is `tanh`");
}

// As transformers: a field that was left over of another head does not count.
TEST(ClassifierHeadTest, FieldsOfOtherHeadsDoNotCount) {
  const auto head = Read(Config(R"(, "classifier_pooling": "mean", "pooling": "last",
                                  "classifier_activation": "relu", "pooler_hidden_act": "tanh",
                                  "temperature": 0.5, "pad_token_id": 7)"),
                         BertHead(1));
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ((*head)->pooling, Pooling::kCls);
  EXPECT_EQ((*head)->padding_id, std::nullopt);
  EXPECT_THAT((*head)->out.weight, ElementsAre(7, 7));
}

TEST(ClassifierHeadTest, OtherArchitecturesHaveNone) {
  for (const char* config :
       {"{}", R"({"architectures": []})", R"({"architectures": ["BertModel"]})",
        R"({"architectures": ["BertForMaskedLM"]})"}) {
    const auto head = Read(config, BertHead(1));
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_FALSE(head->has_value()) << config;
  }
}

TEST(ClassifierHeadTest, TheActivationOfTheScores) {
  const auto activation = [](const std::string& more, int64_t labels) {
    const auto head = Read(Config(more), BertHead(labels));
    EXPECT_TRUE(head.ok()) << head.status();
    return (*head)->scores;
  };
  EXPECT_EQ(activation("", 1), ScoreActivation::kSigmoid);
  EXPECT_EQ(activation("", 3), ScoreActivation::kSoftmax);
  EXPECT_EQ(activation(R"(, "problem_type": "multi_label_classification")", 3),
            ScoreActivation::kSigmoid);
  EXPECT_EQ(activation(R"(, "problem_type": "regression")", 1), ScoreActivation::kNone);
  EXPECT_EQ(activation(R"(, "sentence_transformers": {"version": "5.0"})", 1),
            ScoreActivation::kSigmoid);
  const std::string identity = R"("torch.nn.modules.linear.Identity")";
  const std::string sigmoid = R"("torch.nn.modules.activation.Sigmoid")";
  EXPECT_EQ(activation(R"(, "sentence_transformers": {"activation_fn": )" + identity + "}", 1),
            ScoreActivation::kNone);
  EXPECT_EQ(activation(R"(, "sbert_ce_default_activation_function": )" + identity, 1),
            ScoreActivation::kNone);
  EXPECT_EQ(activation(R"(, "sbert_ce_default_activation_function": )" + sigmoid, 3),
            ScoreActivation::kSigmoid);
  const std::string softmax = R"("torch.nn.modules.activation.Softmax")";
  EXPECT_EQ(activation(R"(, "sentence_transformers": {"activation_fn": )" + softmax + "}", 1),
            ScoreActivation::kSoftmax);
}

TEST(ClassifierHeadTest, RefusesWhatIsMissingOrContradictory) {
  std::vector<TestTensor> no_dense = BertHead(1);
  no_dense.erase(no_dense.begin());
  ExpectRefused(Config(""), no_dense,
                "folder: tensor `bert.pooler.dense.weight` is missing, expected shape [2, 2]");
  ExpectRefused(Config(R"(, "id2label": {"0": "a", "1": "b", "2": "c"})"), BertHead(2),
                "tensor `classifier.weight` has shape [2, 2], the encoder and the config's labels "
                "make it [3, 2]");
  ExpectRefused(Config(R"(, "id2label": {"0": "a", "2": "c"})"), BertHead(2), "`1`");
  ExpectRefused(Config(R"(, "id2label": {})"), BertHead(2), "has no labels");
  ExpectRefused(Config(R"(, "id2label": {"0": 1})"), BertHead(1), "`0`");
  ExpectRefused(Config(R"(, "sentence_transformers": {"activation_fn": "x.Tanh"})"), BertHead(1),
                "`activation_fn` is `x.Tanh`, supported is Identity, Sigmoid or Softmax");
  ExpectRefused(R"({"architectures": 3})", BertHead(1), "architectures");
}

}  // namespace
}  // namespace attendant
