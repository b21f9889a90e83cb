// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/colbert_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kStanford[] = R"({"architectures": ["HF_ColBERT"]})";
constexpr char kPyLateModules[] =
    R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "pylate.models.Dense.Dense", "path": "1_Dense"}])";

std::vector<TestTensor> Others() { return {FloatTensor("x", {1}, {1})}; }

// A folder whose encoder has a hidden size of 2.
struct ColbertFolder {
  TempDirectory directory;
  std::unique_ptr<TensorStore> store;
  std::vector<TokenHead> heads;

  absl::Status Load(const std::string& config, const std::vector<TestTensor>& tensors) {
    WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
    const auto json = ParseJson(config, "config.json");
    auto opened = TensorStore::Open(directory.path());
    EXPECT_TRUE(json.ok() && opened.ok());
    store = *std::move(opened);
    heads.clear();
    return ReadColbertHead(*json, directory.path(), 2, EncoderWeights(), *store, heads);
  }
  void WriteDense(const std::string& config) {
    WriteFile(directory / "modules.json", kPyLateModules);
    std::filesystem::create_directories(directory / "1_Dense");
    WriteFile(directory / "1_Dense/config.json", config);
    WriteFile(directory / "1_Dense/model.safetensors",
              SafetensorsBytes({FloatTensor("linear.weight", {3, 2}, {1, 2, 3, 4, 5, 6})}));
  }
};

std::string Dense(const std::string& more) {
  return R"({"in_features": 2, "out_features": 3, "bias": false, "activation_function": )" + more +
         "}";
}

TEST(ColbertHeadTest, StanfordsIsBesideTheEncoder) {
  ColbertFolder folder;
  const auto weight = FloatTensor("linear.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(folder.Load("{}", {weight}).ok());
  EXPECT_THAT(folder.heads, IsEmpty());
  ASSERT_TRUE(folder.Load(kStanford, {weight}).ok());
  ASSERT_THAT(folder.heads, SizeIs(1));
  const TokenHead& head = folder.heads.front();
  EXPECT_EQ(head.kind, TokenHeadKind::kVectors);
  EXPECT_TRUE(head.options.late_interaction);
  EXPECT_FALSE(head.options.skip_first);
  EXPECT_EQ(head.out.weight.dim(0), 3);
  EXPECT_EQ(head.out.weight.data()[5], 6);
  EXPECT_TRUE(head.out.bias.empty());
  ASSERT_TRUE(folder.Load(kStanford, {weight, FloatTensor("linear.bias", {3}, {7, 8, 9})}).ok());
  EXPECT_EQ(folder.heads.front().out.bias.data()[2], 9);
}

TEST(ColbertHeadTest, PyLatesIsAModule) {
  ColbertFolder folder;
  folder.WriteDense(Dense(R"("torch.nn.modules.linear.Identity")"));
  ASSERT_TRUE(folder.Load("{}", Others()).ok());
  ASSERT_THAT(folder.heads, SizeIs(1));
  EXPECT_EQ(folder.heads.front().out.weight.data()[5], 6);
  EXPECT_TRUE(folder.heads.front().options.late_interaction);
}

// Each with a residual connection: the first adds its input, the second another layer.
TEST(ColbertHeadTest, SeveralDenseModulesAreOneLayer) {
  ColbertFolder folder;
  WriteFile(folder.directory / "modules.json",
            R"([{"type": "sentence_transformers.Transformer"},
                {"type": "sentence_transformers.Dense", "path": "1"},
                {"type": "sentence_transformers.Dense", "path": "2"},
                {"type": "sentence_transformers.MultiVectorMask", "path": "3"},
                {"type": "sentence_transformers.Normalize", "path": "4"}])");
  for (const char* name : {"1", "2", "4"}) {
    std::filesystem::create_directories(folder.directory / name);
  }
  WriteFile(folder.directory / "1/config.json",
            R"({"in_features": 2, "out_features": 2, "bias": true, "use_residual": true,
                "activation_function": "torch.nn.modules.linear.Identity",
                "module_input_name": "token_embeddings", "module_output_name": "token_embeddings"})");
  WriteFile(folder.directory / "1/model.safetensors",
            SafetensorsBytes({FloatTensor("linear.weight", {2, 2}, {0, 2, 3, 3}),
                              FloatTensor("linear.bias", {2}, {1, 2})}));
  WriteFile(folder.directory / "2/config.json",
            R"({"in_features": 2, "out_features": 1, "bias": true, "use_residual": true,
                "activation_function": "torch.nn.modules.linear.Identity",
                "module_input_name": "token_embeddings"})");
  WriteFile(folder.directory / "2/model.safetensors",
            SafetensorsBytes({FloatTensor("linear.weight", {1, 2}, {1, 5}),
                              FloatTensor("linear.bias", {1}, {7}),
                              FloatTensor("residual.weight", {1, 2}, {2, 4})}));
  const std::string normalize = R"({"module_input_name": "token_embeddings"})";
  WriteFile(folder.directory / "4/config.json", normalize);
  ASSERT_TRUE(folder.Load("{}", Others()).ok());
  // [1 2; 3 4] x + [1; 2], then [3 9] y + 7
  const LinearWeights& out = folder.heads.front().out;
  EXPECT_EQ(out.weight.dim(0), 1);
  EXPECT_EQ(out.weight.data()[0], 3 * 1 + 9 * 3);
  EXPECT_EQ(out.weight.data()[1], 3 * 2 + 9 * 4);
  EXPECT_EQ(out.bias.data()[0], 3 * 1 + 9 * 2 + 7);
  const auto mask = FindMaskModule(folder.directory.path());
  ASSERT_TRUE(mask.ok() && mask->has_value()) << mask.status();
  EXPECT_EQ((*mask)->path(), folder.directory / "3");

  WriteFile(folder.directory / "4/config.json", R"({"module_input_name": "sentence_embedding"})");
  EXPECT_THAT(std::string(folder.Load("{}", Others()).message()), HasSubstr("module_input_name"));
  WriteFile(folder.directory / "modules.json",
            R"([{"type": "sentence_transformers.Transformer"},
                {"type": "sentence_transformers.Dense", "path": "1"},
                {"type": "sentence_transformers.MultiVectorMask", "path": "3"}])");
  EXPECT_THAT(std::string(folder.Load("{}", Others()).message()), HasSubstr("with a Normalize"));
}

// A chain of square layers would keep the loading thread for minutes.
TEST(ColbertHeadTest, DenseModulesThatTakeLongToJoinAreRefused) {
  constexpr int64_t kWidth = 2049;
  ColbertFolder folder;
  std::string modules = R"([{"type": "sentence_transformers.Transformer"})";
  int64_t inputs = 2;
  for (const char* name : {"1", "2", "3"}) {
    std::filesystem::create_directories(folder.directory / name);
    WriteFile(folder.directory / absl::StrCat(name, "/config.json"),
              absl::StrCat(R"({"in_features": )", inputs, R"(, "out_features": )", kWidth,
                           R"(, "bias": false,
                "activation_function": "torch.nn.modules.linear.Identity"})"));
    WriteFile(
        folder.directory / absl::StrCat(name, "/model.safetensors"),
        SafetensorsBytes({FloatTensor("linear.weight", {kWidth, inputs},
                                      std::vector<float>(static_cast<size_t>(kWidth * inputs)))}));
    absl::StrAppend(&modules, R"(, {"type": "sentence_transformers.Dense", "path": ")", name,
                    R"("})");
    inputs = kWidth;
  }
  WriteFile(folder.directory / "modules.json", modules + "]");
  const absl::Status status = folder.Load("{}", Others());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("modules.json: to make one layer of 3 Dense modules takes 8610920451 "
                        "multiplications, the limit is 8589934592"));
}

TEST(ColbertHeadTest, WhatDoesNotFitIsRefused) {
  ColbertFolder folder;
  EXPECT_THAT(std::string(folder.Load(kStanford, Others()).message()),
              HasSubstr("tensor `linear.weight` is missing, expected shape [128, 2]"));
  const auto wide = FloatTensor("linear.weight", {1, 3}, {1, 2, 3});
  EXPECT_THAT(std::string(folder.Load(kStanford, {wide}).message()),
              HasSubstr("has shape [1, 3], the encoder makes it [1, 2]"));
  EXPECT_THAT(
      std::string(folder.Load(kStanford, {FloatTensor("linear.weight", {0, 2}, {})}).message()),
      HasSubstr("`linear.weight` has shape [0, 2], which holds no value"));
  const auto many = FloatTensor("linear.weight", {4097, 2}, std::vector<float>(4097 * 2));
  EXPECT_THAT(
      std::string(folder.Load(kStanford, {many}).message()),
      HasSubstr("`linear.weight` gives 4097 values, of vectors of tokens the limit is 4096"));
  folder.WriteDense(Dense(R"("torch.nn.modules.activation.Tanh")"));
  EXPECT_TRUE(absl::IsUnimplemented(folder.Load("{}", Others())));
  folder.WriteDense(Dense(R"("torch.nn.modules.linear.Identity", "use_residual": true)"));
  EXPECT_THAT(std::string(folder.Load("{}", Others()).message()), HasSubstr("`residual.weight`"));
  WriteFile(folder.directory / "modules.json",
            R"([{"type": "sentence_transformers.Transformer"},
                {"type": "sentence_transformers.Dense", "path": "../1_Dense"}])");
  EXPECT_THAT(std::string(folder.Load("{}", Others()).message()), HasSubstr("'../1_Dense'"));
}

TEST(ColbertHeadTest, OtherChainsAreNotColberts) {
  const auto is_colbert = [](const std::string& modules) {
    return IsColbertChain(*ParseJson(modules, "modules.json"));
  };
  EXPECT_TRUE(*is_colbert(kPyLateModules));
  EXPECT_FALSE(*is_colbert("[]"));
  EXPECT_FALSE(*is_colbert(R"([{"type": "sentence_transformers.Transformer"},
                               {"type": "sentence_transformers.Pooling"}])"));
  const std::string dense = R"([{"type": "sentence_transformers.Transformer"},
                                {"type": "sentence_transformers.Dense"})";
  const std::string mask = R"(, {"type": "sentence_transformers.MultiVectorMask"})";
  const std::string normalize = R"(, {"type": "sentence_transformers.Normalize"})";
  EXPECT_TRUE(*is_colbert(dense + R"(, {"type": "pylate.models.Dense.Dense"}])"));
  EXPECT_TRUE(*is_colbert(dense + mask + normalize + "]"));
  EXPECT_TRUE(*is_colbert(dense + normalize + mask + "]"));
  EXPECT_TRUE(*is_colbert(dense + mask + "]"));
  EXPECT_FALSE(*is_colbert(dense + normalize + "]"));
  EXPECT_FALSE(*is_colbert(dense + mask + mask + normalize + "]"));
  EXPECT_FALSE(
      *is_colbert(dense + mask + normalize + R"(, {"type": "sentence_transformers.Other"}])"));
  EXPECT_FALSE(
      *is_colbert(R"([{"type": "sentence_transformers.Transformer"})" + mask + normalize + "]"));
  EXPECT_FALSE(is_colbert("{}").ok());
  EXPECT_FALSE(is_colbert(R"([{"type": 1}, {"type": "sentence_transformers.Dense"}])").ok());
}

}  // namespace
}  // namespace attendant
