// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/core/base/regular_file.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSeed = 7;

// All widths different, so that a swapped table entry shows.
constexpr EncoderConfig kConfig = {.layers = 2,
                                   .heads = 2,
                                   .hidden = 6,
                                   .ffn = 10,
                                   .vocab = 11,
                                   .max_positions = 5,
                                   .segment_types = 3,
                                   .layer_norm_epsilon = 1e-5f,
                                   .activation = Activation::kGeluTanh};

template <int rank>
std::string Values(const TensorView<const float, rank>& view) {
  return std::string(reinterpret_cast<const char*>(view.data()),
                     static_cast<size_t>(view.size()) * sizeof(float));
}

template <int rank>
void ExpectEqual(const TensorView<const float, rank>& actual,
                 const TensorView<const float, rank>& expected) {
  ASSERT_EQ(actual.dims(), expected.dims());
  EXPECT_TRUE(Values(actual) == Values(expected));
}

void ExpectEqual(const LinearWeights& actual, const LinearWeights& expected) {
  ExpectEqual(actual.weight, expected.weight);
  ExpectEqual(actual.bias, expected.bias);
}

void ExpectEqual(const LayerNormWeights& actual, const LayerNormWeights& expected) {
  ExpectEqual(actual.gamma, expected.gamma);
  ExpectEqual(actual.beta, expected.beta);
}

void ExpectEqual(const EncoderLayerWeights& actual, const EncoderLayerWeights& expected) {
  ExpectEqual(actual.query, expected.query);
  ExpectEqual(actual.key, expected.key);
  ExpectEqual(actual.value, expected.value);
  ExpectEqual(actual.attention_output, expected.attention_output);
  ExpectEqual(actual.attention_norm, expected.attention_norm);
  ExpectEqual(actual.ffn_up, expected.ffn_up);
  ExpectEqual(actual.ffn_down, expected.ffn_down);
  ExpectEqual(actual.ffn_norm, expected.ffn_norm);
}

void ExpectEqual(const EncoderWeights& actual, const EncoderWeights& expected) {
  ExpectEqual(actual.token_embedding, expected.token_embedding);
  ExpectEqual(actual.position_embedding, expected.position_embedding);
  ExpectEqual(actual.segment_embedding, expected.segment_embedding);
  ExpectEqual(actual.embedding_norm, expected.embedding_norm);
  ASSERT_EQ(actual.layers.size(), expected.layers.size());
  for (size_t i = 0; i < actual.layers.size(); ++i) {
    ExpectEqual(actual.layers[i], expected.layers[i]);
  }
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() { WriteFile(directory_ / "config.json", ConfigJson(kConfig)); }

  // Loads a checkpoint whose every tensor `change` has had in its hands.
  absl::StatusOr<Checkpoint> LoadWith(const std::function<void(TestTensor&)>& change) {
    std::vector<TestTensor> tensors = RandomTensors(kConfig, kSeed);
    for (TestTensor& tensor : tensors) change(tensor);
    std::erase_if(tensors, [](const TestTensor& tensor) { return tensor.name.empty(); });
    WriteFile(directory_ / "model.safetensors", SafetensorsBytes(tensors));
    return LoadCheckpoint(directory_.path());
  }

  void ExpectRandomWeights(const absl::StatusOr<Checkpoint>& checkpoint) {
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ExpectEqual(checkpoint->weights, RandomWeights(kConfig, kSeed));
  }

  TempDirectory directory_;
};

TEST_F(CheckpointTest, LoadsEveryTensorToItsPlace) {
  WriteCheckpoint(directory_.path(), kConfig, kSeed);
  const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(directory_.path());
  ExpectRandomWeights(checkpoint);
  EXPECT_EQ(checkpoint->config.ffn, kConfig.ffn);
  EXPECT_EQ(checkpoint->config.layer_norm_epsilon, kConfig.layer_norm_epsilon);
  EXPECT_EQ(checkpoint->config.activation, kConfig.activation);
}

TEST_F(CheckpointTest, StorageOutlivesTheCheckpoint) {
  WriteCheckpoint(directory_.path(), kConfig, kSeed);
  EncoderWeights copy = LoadCheckpoint(directory_.path()).value().weights;
  ExpectEqual(copy, RandomWeights(kConfig, kSeed));
}

TEST_F(CheckpointTest, PrefixAndOldNames) {
  ExpectRandomWeights(LoadWith([](TestTensor& tensor) {
    tensor.name = absl::StrCat(
        "bert.", absl::StrReplaceAll(tensor.name, {{"LayerNorm.weight", "LayerNorm.gamma"},
                                                   {"LayerNorm.bias", "LayerNorm.beta"}}));
  }));
}

TEST_F(CheckpointTest, ExtraTensorsAreIgnored) {
  std::vector<TestTensor> tensors = RandomTensors(kConfig, kSeed);
  tensors.push_back({"embeddings.position_ids", "I64", {1, 5}, std::string(40, '\0')});
  tensors.push_back(FloatTensor("pooler.dense.bias", {6}, {1, 2, 3, 4, 5, 6}));
  tensors.push_back({"cls.odd", "F8_E4M3", {3}, "abc"});
  WriteFile(directory_ / "model.safetensors", SafetensorsBytes(tensors));
  ExpectRandomWeights(LoadCheckpoint(directory_.path()));
}

TEST_F(CheckpointTest, UnalignedData) {
  std::vector<TestTensor> tensors = RandomTensors(kConfig, kSeed);
  tensors.insert(tensors.begin(), {"odd", "U8", {1}, "!"});
  WriteFile(directory_ / "model.safetensors", SafetensorsBytes(tensors));
  ExpectRandomWeights(LoadCheckpoint(directory_.path()));
}

TEST_F(CheckpointTest, F64IsNarrowed) {
  ExpectRandomWeights(LoadWith([](TestTensor& tensor) {
    std::string wide;
    for (size_t i = 0; i < tensor.data.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, tensor.data.data() + i, sizeof(value));
      const double widened = value;
      wide.append(reinterpret_cast<const char*>(&widened), sizeof(widened));
    }
    tensor.data = wide;
    tensor.dtype = "F64";
  }));
}

TEST_F(CheckpointTest, Bf16IsWidened) {
  const absl::StatusOr<Checkpoint> checkpoint = LoadWith([](TestTensor& tensor) {
    std::string narrow;
    for (size_t i = 0; i < tensor.data.size(); i += sizeof(float)) {
      narrow += tensor.data.substr(i + 2, 2);
    }
    tensor.data = narrow;
    tensor.dtype = "BF16";
  });
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const EncoderWeights exact = RandomWeights(kConfig, kSeed);
  const LinearWeights& actual = checkpoint->weights.layers[1].ffn_down;
  const LinearWeights& expected = exact.layers[1].ffn_down;
  for (int64_t i = 0; i < expected.weight.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(expected.weight.data()[i]) & 0xffff0000;
    EXPECT_EQ(std::bit_cast<uint32_t>(actual.weight.data()[i]), bits);
  }
}

TEST_F(CheckpointTest, EveryTensorIsMissedByName) {
  for (const TestTensor& missing : RandomTensors(kConfig, kSeed)) {
    const absl::Status status = LoadWith([&](TestTensor& tensor) {
                                  if (tensor.name == missing.name) tensor.name.clear();
                                }).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << missing.name;
    EXPECT_THAT(status.ToString(), HasSubstr(absl::StrCat(directory_.path(), ": tensor `",
                                                          missing.name, "` is missing")));
  }
}

TEST_F(CheckpointTest, EveryWrongShapeIsNamed) {
  for (const TestTensor& wrong : RandomTensors(kConfig, kSeed)) {
    const absl::Status status = LoadWith([&](TestTensor& tensor) {
                                  if (tensor.name == wrong.name) tensor.dims.push_back(1);
                                }).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong.name;
    EXPECT_THAT(status.ToString(),
                HasSubstr(absl::StrCat("tensor `", wrong.name, "` has shape [")));
  }
  EXPECT_THAT(LoadWith([](TestTensor& tensor) {
                if (tensor.name == "encoder.layer.1.intermediate.dense.weight") {
                  std::swap(tensor.dims[0], tensor.dims[1]);
                }
              })
                  .status()
                  .ToString(),
              HasSubstr("has shape [6, 10], the config makes it [10, 6]"));
}

TEST_F(CheckpointTest, WrongTypeAndNaNAreNamed) {
  const std::string name = "encoder.layer.0.output.dense.bias";
  EXPECT_THAT(LoadWith([&](TestTensor& tensor) {
                if (tensor.name == name) tensor.dtype = "I32";
              })
                  .status()
                  .ToString(),
              HasSubstr("tensor `" + name + "`: dtype is `I32`"));
  EXPECT_THAT(LoadWith([&](TestTensor& tensor) {
                if (tensor.name == name) std::memset(tensor.data.data() + 8, 0xff, 4);
              })
                  .status()
                  .ToString(),
              HasSubstr("tensor `" + name + "`: value 2 of 6 is"));
}

TEST_F(CheckpointTest, ConfigThatPromisesMoreThanTheFileHolds) {
  EncoderConfig config = kConfig;
  config.layers = 4096;
  WriteCheckpoint(directory_.path(), kConfig, kSeed);
  WriteFile(directory_ / "config.json", ConfigJson(config));
  EXPECT_THAT(LoadCheckpoint(directory_.path()).status().ToString(),
              HasSubstr("tensor `encoder.layer.2.attention.self.query.weight` is missing"));
  config = kConfig;
  config.vocab = 200'000'000;
  WriteFile(directory_ / "config.json", ConfigJson(config));
  EXPECT_THAT(LoadCheckpoint(directory_.path()).status().ToString(),
              HasSubstr("has shape [11, 6], the config makes it [200000000, 6]"));
}

TEST_F(CheckpointTest, ForeignModel) {
  WriteFile(directory_ / "model.safetensors", SafetensorsBytes({FloatTensor("wte", {1}, {1})}));
  EXPECT_THAT(LoadCheckpoint(directory_.path()).status().ToString(),
              HasSubstr("tensor `embeddings.word_embeddings.weight` is missing"));
}

TEST_F(CheckpointTest, AnAdapterOfPeftIsNotLeftOut) {
  WriteCheckpoint(directory_.path(), kConfig, kSeed);
  WriteFile(directory_ / "adapter_config.json", R"({"peft_type": "LORA"})");
  const absl::Status status = LoadCheckpoint(directory_.path()).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("adapter_config.json: an adapter of PEFT"));
}

// A link to itself stands for a disk that does not answer.
TEST_F(CheckpointTest, AnAdapterOfPeftThatCannotBeExaminedIsNotLeftOut) {
  WriteCheckpoint(directory_.path(), kConfig, kSeed);
  std::filesystem::create_symlink("adapter_config.json", directory_ / "adapter_config.json");
  EXPECT_THAT(LoadCheckpoint(directory_.path()).status().ToString(),
              HasSubstr("adapter_config.json: the links lead in a circle"));
}

TEST_F(CheckpointTest, FilesThatAreNotThere) {
  EXPECT_TRUE(absl::IsNotFound(LoadCheckpoint(directory_.path()).status()));
  EXPECT_TRUE(absl::IsNotFound(LoadCheckpoint(directory_ / "none").status()));
  EXPECT_FALSE(LoadCheckpoint(directory_ / "config.json").ok());
}

TEST(GoldenCheckpoint, TinyModelsLoadAndMatchTheirCases) {
  for (const char* model : kTinyModels) {
    const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(GoldenDirectory(model));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const absl::StatusOr<std::vector<GoldenCase>> cases = ReadGoldenCases(model);
    ASSERT_TRUE(cases.ok()) << cases.status();
    EXPECT_GE(cases->size(), 8u);
    for (const GoldenCase& golden : *cases) {
      const size_t len = golden.token_ids.size();
      EXPECT_EQ(golden.positions.size(), len);
      EXPECT_EQ(golden.segment_ids.size(), len);
      EXPECT_EQ(golden.last_hidden_state.size(),
                len * static_cast<size_t>(checkpoint->config.hidden));
    }
  }
}

// Loads a golden model with one more tensor, a vector of zeros.
absl::Status LoadWithBias(const char* model, const char* name, size_t values) {
  const std::string golden = GoldenDirectory(model);
  const std::string file = *ReadTextFile(golden + "/model.safetensors", 1 << 20);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const std::string header = file.substr(sizeof(header_bytes), header_bytes);
  const std::string data = file.substr(sizeof(header_bytes) + header_bytes);
  const std::string bias(values * sizeof(float), '\0');
  const TempDirectory directory;
  WriteFile(directory / "config.json", *ReadTextFile(golden + "/config.json", 1 << 20));
  const std::string entry =
      absl::StrCat("{\"", name, R"(":{"dtype":"F32","shape":[)", values, R"(],"data_offsets":[)",
                   data.size(), ",", data.size() + bias.size(), "]},");
  WriteFile(directory / "model.safetensors",
            SafetensorsBytes(entry + header.substr(1), data + bias));
  return LoadCheckpoint(directory.path()).status();
}

TEST(GoldenCheckpoint, ABiasThatTheConfigDeniesIsRefusedUnderEveryName) {
  const struct {
    const char *model, *name;
    size_t values;
  } cases[] = {{"tiny_modernbert", "model.final_norm.bias", 36},
               {"tiny_modernbert", "model.final_norm.beta", 36},
               {"tiny_neobert", "model.transformer_encoder.0.qkv.bias", 96}};
  for (const auto& [model, name, values] : cases) {
    EXPECT_THAT(LoadWithBias(model, name, values).ToString(),
                HasSubstr(absl::StrCat("tensor `", name, "` is there, the config says")));
  }
}

TEST(GoldenCheckpoint, RealModelLoads) {
  const absl::StatusOr<std::string> directory = RealModelDirectory();
  ASSERT_TRUE(directory.ok()) << directory.status();
  const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(*directory);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->weights.layers.size(), 6u);
  const absl::StatusOr<std::vector<GoldenCase>> cases = ReadGoldenCases("all-MiniLM-L6-v2");
  ASSERT_TRUE(cases.ok()) << cases.status();
  const absl::StatusOr<std::vector<std::string>> texts = ReadGoldenTexts(kRealTexts);
  ASSERT_TRUE(texts.ok()) << texts.status();
  const auto embedded = std::count_if(cases->begin(), cases->end(), [](const GoldenCase& golden) {
    return golden.embedding.size() == 384;
  });
  EXPECT_EQ(static_cast<size_t>(embedded), texts->size());
}

}  // namespace
}  // namespace attendant
