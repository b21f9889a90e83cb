// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/token_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/checkpoints/m3_heads.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kHidden = 2, kVocab = 3;
constexpr float kEmbeddings[] = {1, 2, 3, 4, 5, 6};

EncoderConfig Encoder() {
  EncoderConfig config;
  config.hidden = kHidden;
  config.vocab = kVocab;
  config.activation = Activation::kRelu;
  config.layer_norm_epsilon = 0.25f;
  return config;
}

// The tensors of a head of BERT or RoBERTa.
std::vector<TestTensor> MaskedLm(const std::string& transform, const std::string& norm,
                                 const std::string& bias) {
  return {FloatTensor(transform + ".weight", {2, 2}, {1, 2, 3, 4}),
          FloatTensor(transform + ".bias", {2}, {5, 6}), FloatTensor(norm + ".weight", {2}, {7, 8}),
          FloatTensor(norm + ".bias", {2}, {9, 10}), FloatTensor(bias, {3}, {11, 12, 13})};
}

std::vector<TestTensor> Bert() {
  return MaskedLm("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                  "cls.predictions.bias");
}

std::string Config(const std::string& architecture, const std::string& more = "") {
  return absl::StrCat(R"({"architectures": [")", architecture, R"("])", more, "}");
}

struct Read {
  TempDirectory directory;
  std::unique_ptr<TensorStore> store;
  absl::StatusOr<std::vector<TokenHead>> heads;
  int64_t tied = 0;

  Read(const std::string& config, const std::vector<TestTensor>& tensors) {
    WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
    const auto json = ParseJson(config, "config.json");
    auto opened = TensorStore::Open(directory.path());
    EXPECT_TRUE(json.ok() && opened.ok());
    store = *std::move(opened);
    EncoderWeights weights;
    weights.token_embedding = {kEmbeddings, {kVocab, kHidden}};
    heads = ReadTokenHeads(*json, Encoder(), weights, "folder", *store);
    tied = CountTiedValues(*json, Encoder(), *store);
  }
};

void ExpectRefused(const std::string& config, const std::vector<TestTensor>& tensors,
                   const std::string& message) {
  EXPECT_THAT(std::string(Read(config, tensors).heads.status().message()), HasSubstr(message));
}

TEST(TokenHeadsTest, ADecoderIsTheTokenEmbeddings) {
  const Read read(Config("BertForMaskedLM", R"(, "layer_norm_eps": 0.125)"), Bert());
  ASSERT_TRUE(read.heads.ok()) << read.heads.status();
  ASSERT_THAT(*read.heads, SizeIs(1));
  const TokenHead& head = read.heads->front();
  EXPECT_EQ(head.kind, TokenHeadKind::kMaskedLm);
  EXPECT_EQ(head.dense.weight.data()[3], 4);
  EXPECT_EQ(head.dense.bias.data()[1], 6);
  EXPECT_EQ(head.activation, Activation::kRelu) << "the encoder's";
  EXPECT_EQ(head.norm.gamma.data()[1], 8);
  EXPECT_EQ(head.norm.beta.data()[1], 10);
  EXPECT_EQ(head.norm_epsilon, 0.125f);
  EXPECT_EQ(head.out.weight.data(), kEmbeddings);
  EXPECT_EQ(head.out.bias.data()[2], 13);
  EXPECT_EQ(read.tied, kVocab * kHidden);
}

// So the tensors of google-bert/bert-base-uncased are called.
TEST(TokenHeadsTest, ANormMayHaveItsOlderNames) {
  std::vector<TestTensor> tensors = Bert();
  for (TestTensor& tensor : tensors) {
    tensor.name = absl::StrReplaceAll(tensor.name, {{"LayerNorm.weight", "LayerNorm.gamma"},
                                                    {"LayerNorm.bias", "LayerNorm.beta"}});
  }
  const Read read(Config("BertForMaskedLM"), tensors);
  ASSERT_TRUE(read.heads.ok()) << read.heads.status();
  EXPECT_EQ(read.heads->front().norm.gamma.data()[1], 8);
  EXPECT_EQ(read.heads->front().norm.beta.data()[1], 10);
}

TEST(TokenHeadsTest, ADecoderOfItsOwnCounts) {
  std::vector<TestTensor> tensors = Bert();
  tensors.push_back(
      FloatTensor("cls.predictions.decoder.weight", {3, 2}, std::vector<float>(6, 20)));
  const Read read(Config("BertForMaskedLM"), tensors);
  ASSERT_TRUE(read.heads.ok()) << read.heads.status();
  EXPECT_EQ(read.heads->front().out.weight.data()[0], 20);
  EXPECT_EQ(read.tied, 0);
}

// config.json has its epsilon under one of two names; the encoder has read it. The code that came
// with Nomic's checkpoints leaves biases out where an option says so.
TEST(TokenHeadsTest, NomicAndGteHaveTheEpsilonOfTheEncoder) {
  std::vector<TestTensor> nomic =
      MaskedLm("cls.predictions.transform.dense", "cls.predictions.transform.layer_norm",
               "cls.predictions.bias");
  for (const bool biased : {true, false}) {
    if (!biased) nomic.pop_back();
    const Read read(Config("NomicBertForMaskedLM"), nomic);
    ASSERT_TRUE(read.heads.ok()) << read.heads.status();
    EXPECT_EQ(read.heads->front().activation, Activation::kRelu) << "the encoder's";
    EXPECT_EQ(read.heads->front().norm_epsilon, 0.25f);
    EXPECT_EQ(read.heads->front().out.bias.data() != nullptr, biased);
  }
  const auto gte = MaskedLm("lm_head.dense", "lm_head.norm", "lm_head.decoder.bias");
  for (const auto& [name, activation] :
       {std::pair{"GteForMaskedLM", Activation::kGeluErf}, {"NewForMaskedLM", Activation::kRelu}}) {
    const Read read(Config(name), gte);
    ASSERT_TRUE(read.heads.ok()) << read.heads.status();
    EXPECT_EQ(read.heads->front().activation, activation);
    EXPECT_EQ(read.heads->front().norm_epsilon, 0.25f);
    EXPECT_EQ(read.heads->front().out.bias.data()[2], 13);
  }
}

TEST(TokenHeadsTest, RobertaHasNamesAndAnActivationOfItsOwn) {
  for (const char* name : {"RobertaForMaskedLM", "XLMRobertaForMaskedLM", "CamembertForMaskedLM",
                           "MPNetForMaskedLM"}) {
    const Read read(Config(name), MaskedLm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"));
    ASSERT_TRUE(read.heads.ok()) << read.heads.status();
    EXPECT_EQ(read.heads->front().activation, Activation::kGeluErf);
    EXPECT_EQ(read.heads->front().norm_epsilon, 1e-12f);
  }
  const Read jina(Config("JinaEmbeddingsV3ForMaskedLM"),
                  MaskedLm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"));
  ASSERT_TRUE(jina.heads.ok()) << jina.heads.status();
  EXPECT_EQ(jina.heads->front().norm_epsilon, 0.25f) << "the encoder's";
}

TEST(TokenHeadsTest, AnEncoderAloneHasNoHead) {
  const std::vector<TestTensor> others = {FloatTensor("pooler.dense.weight", {1}, {1})};
  for (const char* name : {"BertForMaskedLM", "MPNetForMaskedLM", "BertModel"}) {
    const Read read(Config(name), others);
    ASSERT_TRUE(read.heads.ok()) << read.heads.status();
    EXPECT_THAT(*read.heads, IsEmpty());
    EXPECT_EQ(read.tied, 0);
  }
  EXPECT_THAT(*Read("{}", others).heads, IsEmpty());
}

TEST(TokenHeadsTest, AClassifierOfTokensHasLabels) {
  const Read read(
      Config("XLMRobertaForTokenClassification", R"(, "id2label": {"0": "O", "1": "PER"})"),
      {FloatTensor("classifier.weight", {2, 2}, {1, 2, 3, 4}),
       FloatTensor("classifier.bias", {2}, {5, 6})});
  ASSERT_TRUE(read.heads.ok()) << read.heads.status();
  const TokenHead& head = read.heads->front();
  EXPECT_EQ(head.kind, TokenHeadKind::kTokenLabels);
  EXPECT_TRUE(head.dense.weight.empty());
  EXPECT_THAT(head.labels, ElementsAre("O", "PER"));
}

TEST(TokenHeadsTest, RefusesWhatIsMissingOrContradictory) {
  for (size_t gone = 0; gone < Bert().size(); ++gone) {
    std::vector<TestTensor> tensors = Bert();
    const std::string name = tensors[gone].name;
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(gone));
    ExpectRefused(Config("BertForMaskedLM"), tensors,
                  absl::StrCat("folder: tensor `", name, "` is missing"));
  }
  std::vector<TestTensor> narrow = Bert();
  narrow.back() = FloatTensor("cls.predictions.bias", {2}, {1, 2});
  ExpectRefused(Config("BertForMaskedLM"), narrow,
                "tensor `cls.predictions.bias` has shape [2], the encoder and the config make it "
                "[3]");
  ExpectRefused(Config("BertForMaskedLM", R"(, "tie_word_embeddings": false)"), Bert(),
                "`cls.predictions.decoder.weight` is missing, and `tie_word_embeddings` is false");
  ExpectRefused(Config("BertForMaskedLM", R"(, "layer_norm_eps": 2)"), Bert(), "layer_norm_eps");
  ExpectRefused(Config("BertForTokenClassification"), {FloatTensor("x", {1}, {1})},
                "tensor `classifier.weight` is missing, expected shape [2, 2]");
  ExpectRefused(Config("BertForTokenClassification", R"(, "id2label": {"0": "a"})"),
                {FloatTensor("classifier.weight", {2, 2}, {1, 2, 3, 4}),
                 FloatTensor("classifier.bias", {2}, {5, 6})},
                "make it [1, 2]");
  ExpectRefused(Config("ModernBertForTokenClassification", R"(, "classifier_activation": "relu")"),
                {FloatTensor("head.dense.weight", {2, 2}, {1, 2, 3, 4})}, "classifier_activation");
}

// [2^50, 0] takes no bytes of the file.
TEST(TokenHeadsTest, AShapeWithoutValuesCountsNoLabels) {
  ExpectRefused(Config("BertForTokenClassification"),
                {FloatTensor("classifier.weight", {int64_t{1} << 50, 0}, {})},
                "has shape [1125899906842624, 0], the encoder and the config make it");
}

TEST(TokenHeadsTest, ManyLabelsAreNoHead) {
  const auto head = [](int64_t labels) {
    const auto count = static_cast<size_t>(labels);
    return std::vector<TestTensor>{
        FloatTensor("classifier.weight", {labels, 2}, std::vector<float>(2 * count)),
        FloatTensor("classifier.bias", {labels}, std::vector<float>(count))};
  };
  const Read most(Config("BertForTokenClassification"), head(1 << 16));
  EXPECT_TRUE(most.heads.ok()) << most.heads.status();
  ExpectRefused(Config("BertForTokenClassification"), head((1 << 16) + 1),
                "`classifier` has 65537 labels, of tokens the limit is 65536");
}

struct M3 {
  TempDirectory directory;
  std::vector<TokenHead> heads;
  std::vector<UnreadHead> unread;

  absl::Status Load() { return ReadM3Heads(directory.path(), kHidden, heads, unread); }
  void Write(const std::string& file, const std::vector<TestTensor>& tensors) {
    WriteFile(directory / file, SafetensorsBytes(tensors));
  }
};

TEST(M3HeadsTest, ReadsTheFilesThatAreThere) {
  M3 m3;
  ASSERT_TRUE(m3.Load().ok());
  EXPECT_THAT(m3.heads, IsEmpty());
  m3.Write("sparse_linear.safetensors",
           {FloatTensor("weight", {1, 2}, {1, 2}), FloatTensor("bias", {1}, {3})});
  m3.Write("colbert_linear.safetensors", {FloatTensor("weight", {3, 2}, {1, 2, 3, 4, 5, 6}),
                                          FloatTensor("bias", {3}, {7, 8, 9})});
  ASSERT_TRUE(m3.Load().ok());
  ASSERT_THAT(m3.heads, SizeIs(2));
  EXPECT_EQ(m3.heads[0].kind, TokenHeadKind::kTokenWeights);
  EXPECT_EQ(m3.heads[0].out.weight.data()[1], 2);
  EXPECT_EQ(m3.heads[1].kind, TokenHeadKind::kVectors);
  EXPECT_TRUE(m3.heads[1].options.skip_first);
  EXPECT_EQ(m3.heads[1].out.bias.data()[2], 9);
  EXPECT_THAT(m3.unread, IsEmpty());
}

TEST(M3HeadsTest, APickleIsNotReadAndSaysHowToConvertIt) {
  M3 m3;
  WriteFile(m3.directory / "colbert_linear.pt", "pickle");
  ASSERT_TRUE(m3.Load().ok());
  EXPECT_THAT(m3.heads, IsEmpty());
  ASSERT_THAT(m3.unread, SizeIs(1));
  EXPECT_EQ(m3.unread[0].kind, TokenHeadKind::kVectors);
  EXPECT_THAT(m3.unread[0].reason, HasSubstr("colbert_linear.safetensors')\""));
}

TEST(M3HeadsTest, RefusesWhatDoesNotFit) {
  M3 wide;
  wide.Write("sparse_linear.safetensors",
             {FloatTensor("weight", {2, 2}, {1, 2, 3, 4}), FloatTensor("bias", {2}, {3, 4})});
  EXPECT_THAT(std::string(wide.Load().message()),
              HasSubstr("sparse_linear.safetensors: tensor `weight` has shape [2, 2], the encoder "
                        "makes it [1, 2]"));
  M3 no_bias;
  no_bias.Write("colbert_linear.safetensors", {FloatTensor("weight", {1, 2}, {1, 2})});
  EXPECT_THAT(std::string(no_bias.Load().message()), HasSubstr("tensor `bias` is missing"));
  M3 long_vectors;
  long_vectors.Write("colbert_linear.safetensors",
                     {FloatTensor("weight", {4097, 2}, std::vector<float>(4097 * 2)),
                      FloatTensor("bias", {4097}, std::vector<float>(4097))});
  EXPECT_THAT(std::string(long_vectors.Load().message()),
              HasSubstr("colbert_linear.safetensors: tensor `weight` gives 4097 values, of vectors "
                        "of tokens the limit is 4096"));
  M3 broken;
  WriteFile(broken.directory / "sparse_linear.safetensors", "no safetensors");
  EXPECT_THAT(std::string(broken.Load().message()), HasSubstr("sparse_linear.safetensors"));
}

}  // namespace
}  // namespace attendant
