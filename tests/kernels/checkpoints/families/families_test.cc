// SPDX-License-Identifier: Apache-2.0
// BERT's relatives: their config.json, and how their tensors are found. tests/kernels/backends
// compares what they compute with transformers (the tiny checkpoints of tests/golden/encoder).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/io/json_file.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<FamilyConfig> Read(const std::string& text) {
  const absl::StatusOr<JsonNode> json = ParseJson(text, "config.json");
  if (!json.ok()) return json.status();
  const absl::StatusOr<const Family*> family = FindFamily(*json);
  if (!family.ok()) return family.status();
  return (*family)->read_config(*json);
}

std::string Bert(const std::string& type, const std::string& more = "") {
  return absl::StrCat("{\"model_type\": \"", type, "\"", more,
                      ", \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
                      "\"hidden_size\": 48, \"intermediate_size\": 112, \"vocab_size\": 97, "
                      "\"max_position_embeddings\": 42}");
}

TEST(RobertaTest, PositionsBeginBehindThePaddingToken) {
  for (const char* type : {"roberta", "camembert", "xlm-roberta"}) {
    const auto config = Read(Bert(type, ", \"type_vocab_size\": 1"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->first_position, 2) << "1 is the default of pad_token_id";
    EXPECT_EQ(config->encoder.max_positions, 40);
    EXPECT_EQ(config->encoder.segment_types, 1);
  }
  const auto config = Read(Bert("roberta", ", \"pad_token_id\": 0"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->first_position, 1);
  EXPECT_EQ(config->encoder.max_positions, 41);
}

TEST(RobertaTest, APaddingTokenBehindThePositionsIsRefused) {
  EXPECT_TRUE(Read(Bert("roberta", ", \"pad_token_id\": 40")).ok());
  for (const char* id : {"-1", "41", "9223372036854775807", "\"1\"", "1.5"}) {
    const absl::Status status =
        Read(Bert("roberta", absl::StrCat(", \"pad_token_id\": ", id))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << id;
    EXPECT_THAT(std::string(status.message()), HasSubstr("pad_token_id")) << id;
  }
}

TEST(ElectraTest, NarrowEmbeddingsAreRefusedByName) {
  EXPECT_TRUE(Read(Bert("electra", ", \"embedding_size\": 48")).ok());
  for (const char* more : {"", ", \"embedding_size\": 128"}) {
    const absl::Status status = Read(Bert("electra", more)).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("`embedding_size` is 128"));
  }
}

constexpr char kDistilBert[] =
    R"({"model_type": "distilbert", "n_layers": 3, "n_heads": 4, "dim": 48, "hidden_dim": 112,
        "vocab_size": 97, "max_position_embeddings": 40, "activation": "relu"})";

TEST(DistilBertTest, HasNamesOfItsOwnAndNoSegments) {
  const auto config = Read(kDistilBert);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.layers, 3);
  EXPECT_EQ(config->encoder.heads, 4);
  EXPECT_EQ(config->encoder.hidden, 48);
  EXPECT_EQ(config->encoder.ffn, 112);
  EXPECT_EQ(config->encoder.segment_types, 1);
  EXPECT_EQ(config->encoder.layer_norm_epsilon, 1e-12f);
  EXPECT_EQ(config->encoder.activation, Activation::kRelu);
}

TEST(FamilyTest, AnUnknownOneIsRefusedWithAllThatAreKnown) {
  const absl::Status status = Read(Bert("t5")).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("supported is bert, camembert, distilbert, electra, roberta, xlm-roberta"));
}

class TinyFamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(TinyFamilyTest, LoadsAndNamesATensorThatIsMissing) {
  const std::string golden = GoldenDirectory(GetParam());
  const auto checkpoint = LoadCheckpoint(golden);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(ValidateWeights(checkpoint->config, checkpoint->weights).ok());
  EXPECT_EQ(checkpoint->config.max_positions, 40);
  // With one layer more than there is.
  TempDirectory directory;
  std::filesystem::copy(golden + "/model.safetensors", directory / "model.safetensors");
  std::string config = *ReadTextFile(golden + "/config.json", 1 << 20);
  for (const std::string field : {"n_layers", "num_hidden_layers"}) {
    const std::string two = absl::StrCat("\"", field, "\": 2");
    const size_t at = config.find(two);
    if (at != std::string::npos) config.replace(at, two.size(), absl::StrCat("\"", field, "\": 3"));
  }
  WriteFile(directory / "config.json", config);
  const absl::Status status = LoadCheckpoint(directory.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer.2."));
}

INSTANTIATE_TEST_SUITE_P(Families, TinyFamilyTest,
                         testing::Values("tiny_roberta", "tiny_distilbert", "tiny_electra"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace attendant
