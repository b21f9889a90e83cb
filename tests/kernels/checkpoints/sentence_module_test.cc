// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/sentence_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

TEST(SentenceModuleTest, AClassIsKnownByItsPackage) {
  const std::pair<const char*, const char*> cases[] = {
      // Versions 2 to 5 of sentence-transformers.
      {"sentence_transformers.models.Transformer", "Transformer"},
      {"sentence_transformers.models.Pooling", "Pooling"},
      {"sentence_transformers.models.Dense", "Dense"},
      {"sentence_transformers.models.Normalize", "Normalize"},
      {"sentence_transformers.sparse_encoder.models.MLMTransformer", "MLMTransformer"},
      {"sentence_transformers.sparse_encoder.models.SpladePooling", "SpladePooling"},
      // Version 6.
      {"sentence_transformers.base.modules.transformer.Transformer", "Transformer"},
      {"sentence_transformers.sentence_transformer.modules.pooling.Pooling", "Pooling"},
      {"sentence_transformers.base.modules.dense.Dense", "Dense"},
      {"sentence_transformers.base.modules.normalize.Normalize", "Normalize"},
      {"sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling",
       "SpladePooling"},
      {"pylate.models.Dense.Dense", "Dense"},
      {"custom_st.Transformer", "Transformer"},
  };
  for (const auto& [type, name] : cases) EXPECT_EQ(ModuleClass(type), name);
  for (const char* type :
       {"Transformer", "custom_st.Pooling", "custom_st.TransformerOfMine",
        "custom_st.Transformer.Pooling", "my_module.Transformer", "pylate_more.models.Dense.Dense",
        "sentence_transformers_more.Normalize", "more.sentence_transformers.models.Normalize"}) {
    EXPECT_EQ(ModuleClass(type), type);
  }
}

// Computed without them, the embedding would be another.
TEST(SentenceModuleTest, TensorsWithoutAPlaceInTheConfigAreRefused) {
  const TempDirectory directory;
  const TestTensor weight = FloatTensor("linear.weight", {1, 2}, {1, 2});
  const TestTensor bias = FloatTensor("linear.bias", {1}, {3});
  const TestTensor residual = FloatTensor("residual.weight", {1, 2}, {4, 5});
  const auto read = [&](const std::string& fields, const std::vector<TestTensor>& tensors) {
    WriteFile(directory / "config.json",
              absl::StrCat(R"({"in_features": 2, "out_features": 1)", fields, "}"));
    WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
    return ReadDense(directory.path(), 2).status();
  };
  EXPECT_TRUE(read(R"(, "use_residual": true)", {weight, bias, residual}).ok());
  const std::string without_bias = R"(, "bias": false)";
  EXPECT_TRUE(read(without_bias, {weight}).ok());
  EXPECT_THAT(std::string(read(without_bias, {weight, bias}).message()),
              HasSubstr("tensor `linear.bias` is there"));
  EXPECT_THAT(std::string(read("", {weight, bias, residual}).message()),
              HasSubstr("tensor `residual.weight` is there"));
}

TEST(SentenceModuleTest, ANormHasNoTensorsBesideItsOwn) {
  const TempDirectory directory;
  std::vector<TestTensor> tensors = {FloatTensor("norm.weight", {2}, {1, 2}),
                                     FloatTensor("norm.bias", {2}, {3, 4})};
  const auto read = [&] {
    WriteFile(directory / "config.json", R"({"dimension": 2})");
    WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
    return ReadHeadNorm(directory.path(), 2).status();
  };
  EXPECT_TRUE(read().ok());
  tensors.push_back(FloatTensor("linear.weight", {1, 2}, {5, 6}));
  EXPECT_THAT(std::string(read().message()), HasSubstr("tensor `linear.weight` is there"));
}

}  // namespace
}  // namespace attendant
