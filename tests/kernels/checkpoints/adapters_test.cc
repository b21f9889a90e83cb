// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/any_checkpoint.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kConfig[] =
    R"({"lora_adaptations": ["query", "match"], "lora_rank": 1, "lora_alpha": 2})";

// Tensor `which` of the adapters of `path`.
TestTensor Factor(const std::string& path, const char* which, const std::vector<int64_t>& dims,
                  const std::vector<float>& values) {
  return FloatTensor(absl::StrCat(path, ".parametrizations.weight.0.lora_", which), dims, values);
}

// A linear layer [2, 3] and a table of its shape, of two adapters of rank 1.
std::vector<TestTensor> Tensors() {
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  return {FloatTensor("fc.parametrizations.weight.original", {2, 3}, weight),
          Factor("fc", "A", {2, 1, 3}, {9, 9, 9, 1, 10, 100}),
          Factor("fc", "B", {2, 2, 1}, {9, 9, 1, -1}),
          FloatTensor("fc.bias", {2}, {7, 8}),
          FloatTensor("word_embeddings.parametrizations.weight.original", {2, 3}, weight),
          Factor("word_embeddings", "A", {2, 2, 1}, {9, 9, 1, -1}),
          Factor("word_embeddings", "B", {2, 1, 3}, {9, 9, 9, 1, 10, 100})};
}

struct Merged {
  TempDirectory directory;
  std::unique_ptr<TensorStore> store;
  absl::Status status;

  explicit Merged(const std::string& adapter, const std::string& config = kConfig,
                  const std::vector<TestTensor>& tensors = Tensors()) {
    WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
    const auto json = ParseJson(config, "config.json");
    auto opened = TensorStore::Open(directory.path());
    EXPECT_TRUE(json.ok() && opened.ok());
    store = *std::move(opened);
    status = MergeAdapter(*json, adapter, *store);
  }

  std::vector<float> Values(const std::string& name) const {
    const StoredTensor* tensor = store->Find(name);
    if (tensor == nullptr) return {};
    const float* values = *store->Floats(*tensor);
    return std::vector<float>(values, values + 6);
  }
};

void ExpectRefused(const Merged& merged, const std::string& message) {
  EXPECT_TRUE(absl::IsInvalidArgument(merged.status)) << merged.status;
  EXPECT_THAT(std::string(merged.status.message()), HasSubstr(message));
}

TEST(AdaptersTest, AreReadInTheirOrder) {
  const auto names = [](const std::string& config) {
    return ReadAdapterNames(*ParseJson(config, "config.json"));
  };
  EXPECT_THAT(*names(kConfig), ElementsAre("query", "match"));
  EXPECT_TRUE(names("{}")->empty());
  EXPECT_TRUE(absl::IsInvalidArgument(names(R"({"lora_adaptations": "query"})").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(names(R"({"lora_adaptations": [1]})").status()));
}

TEST(AdaptersTest, WithoutOneTheWeightsAreThoseInTheFile) {
  const Merged merged("");
  ASSERT_TRUE(merged.status.ok()) << merged.status;
  EXPECT_THAT(merged.Values("fc.weight"), ElementsAre(1, 2, 3, 4, 5, 6));
  const StoredTensor* original = merged.store->Find("fc.parametrizations.weight.original");
  EXPECT_EQ(merged.store->Find("fc.weight"), original) << "no copy";
}

TEST(AdaptersTest, TheOneThatIsAskedForIsAdded) {
  const Merged merged("match");
  ASSERT_TRUE(merged.status.ok()) << merged.status;
  EXPECT_THAT(merged.Values("fc.weight"), ElementsAre(3, 22, 203, 2, -15, -194));
  EXPECT_THAT(merged.Values("word_embeddings.weight"), ElementsAre(3, 22, 203, 2, -15, -194));
  EXPECT_THAT(merged.Values("fc.parametrizations.weight.original"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(AdaptersTest, RanksAreSummed) {
  const Merged merged(
      "a", R"({"lora_adaptations": ["a"], "lora_rank": 2, "lora_alpha": 1})",
      {FloatTensor("fc.parametrizations.weight.original", {2, 3}, std::vector<float>(6, 0)),
       Factor("fc", "A", {1, 2, 3}, {1, 2, 3, 10, 20, 30}),
       Factor("fc", "B", {1, 2, 2}, {2, 4, 6, -8})});
  ASSERT_TRUE(merged.status.ok()) << merged.status;
  EXPECT_THAT(merged.Values("fc.weight"), ElementsAre(21, 42, 63, -37, -74, -111));
}

TEST(AdaptersTest, AnUnknownOneIsRefusedWithAllThatThereAre) {
  ExpectRefused(Merged("x"), "'x' is unknown: config.json has the adapters 'query', 'match'");
  ExpectRefused(Merged("x", "{}"), "config.json has no adapters (`lora_adaptations`)");
  ExpectRefused(Merged("query", kConfig, {FloatTensor("fc.weight", {1}, {1})}),
                "no tensor has adapters");
}

TEST(AdaptersTest, WhatDoesNotFitIsRefused) {
  const auto with = [](const char* fields) {
    return absl::StrCat(R"({"lora_adaptations": ["query", "match"])", fields, "}");
  };
  ExpectRefused(Merged("query", with(R"(, "lora_rank": 0)")), "`lora_rank` is 0");
  ExpectRefused(Merged("query", with(R"(, "lora_rank": 1, "lora_alpha": 1e300)")), "`lora_alpha`");
  ExpectRefused(Merged("query", with("")),
                "`fc.parametrizations.weight.0.lora_B` has shape [2, 2, 1], the weight and the "
                "config make it [2, 2, 4]");
  std::vector<TestTensor> tensors = Tensors();
  tensors.erase(tensors.begin() + 1);
  ExpectRefused(Merged("query", kConfig, tensors),
                "`fc.parametrizations.weight.0.lora_A` is missing, expected shape [2, 1, 3]");
  tensors = Tensors();
  tensors.push_back(FloatTensor("fc.weight", {1}, {1}));
  ExpectRefused(Merged("", kConfig, tensors), "and `fc.weight` are both there");
  tensors = Tensors();
  tensors[0].dims = {6};
  ExpectRefused(Merged("query", kConfig, tensors), "adapters need a matrix");
}

TEST(AdaptersTest, AnAttentionModuleHasNone) {
  const std::string folder = "tests/golden/attention/mha";
  EXPECT_TRUE(LoadAnyCheckpoint(folder).ok());
  const absl::Status status = LoadAnyCheckpoint(folder, "query").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace attendant
