// SPDX-License-Identifier: Apache-2.0
// Jina v2, and its variant with norms of queries and keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/base/regular_file.h"
#include "tests/kernels/checkpoints/families/family_support.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

std::string Jina(const std::string& more,
                 const std::string& repository = "jina-bert-implementation") {
  return Bert("bert", absl::StrCat(", \"auto_map\": {\"AutoModel\": \"jinaai/", repository,
                                   "--modeling_bert.JinaBertModel\"}", more));
}

TEST(JinaBertTest, IsFoundByItsCode) {
  const std::string alibi = ", \"position_embedding_type\": \"alibi\"";
  const auto config = Read(Jina(alibi + ", \"feed_forward_type\": \"geglu\""));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.score_bias, ScoreBias::kAlibi);
  EXPECT_EQ(config->encoder.positions, Positions::kNone);
  EXPECT_TRUE(config->encoder.gated_ffn);
  EXPECT_EQ(config->encoder.activation, Activation::kGeluErf);
  EXPECT_FALSE(config->biases.ffn_up);
  const auto relu = Read(Jina(alibi + ", \"feed_forward_type\": \"reglu\""));
  ASSERT_TRUE(relu.ok()) << relu.status();
  EXPECT_EQ(relu->encoder.activation, Activation::kRelu);
  ExpectUnimplemented(Jina(alibi), "`feed_forward_type` is `original`");
  ExpectUnimplemented(Jina(", \"position_embedding_type\": \"absolute\""),
                      "`position_embedding_type` is `absolute`");
  EXPECT_TRUE(absl::IsInvalidArgument(Read(Jina("")).status()));
  ExpectUnimplemented(Jina(alibi, "jina-bert-of-others"), "`auto_map`");
}

TEST(JinaQkNormTest, IsFoundByItsCode) {
  const std::string fields =
      R"(, "position_embedding_type": "alibi", "feed_forward_type": "geglu")";
  const auto config = Read(Jina(fields, "jina-bert-v2-qk-post-norm"));
  ASSERT_TRUE(config.ok()) << config.status();
  EncoderConfig expected = Read(Jina(fields))->encoder;
  expected.query_key_norm = QueryKeyNorm::kWhole;
  expected.second_attention_norm = true;
  EXPECT_TRUE(config->encoder == expected);
  ExpectUnimplemented(Jina(R"(, "position_embedding_type": "alibi")", "jina-bert-v2-qk-post-norm"),
                      "`feed_forward_type` is `original`");
}

// The status of the tiny checkpoint with the tensor `from` under the name `to`, which is as long.
absl::Status WithRenamed(const std::string& from, const std::string& to) {
  const std::string golden = GoldenDirectory("tiny_jina_qk");
  TempDirectory directory;
  std::filesystem::copy(golden + "/config.json", directory / "config.json");
  std::string bytes = *ReadTextFile(golden + "/model.safetensors", 1 << 20);
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  WriteFile(directory / "model.safetensors", bytes.replace(at, from.size(), to));
  return LoadCheckpoint(directory.path()).status();
}

TEST(JinaQkNormTest, NamesTensorsThatAreMissingOrOfOtherShapes) {
  const std::string layer = "encoder.layer.1.";
  for (const std::string name :
       {"attention.self.layer_norm_q.weight", "attention.self.layer_norm_k.bias",
        "attention.output.LayerNorm.bias", "layer_norm_1.weight", "layer_norm_2.bias",
        "mlp.up_gated_layer.weight", "mlp.down_layer.bias"}) {
    std::string other = layer + name;
    other[0] = 'E';
    const absl::Status missing = WithRenamed(layer + name, other);
    EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
    EXPECT_THAT(std::string(missing.message()), HasSubstr(layer + name));
  }
  // A norm of each head instead.
  const absl::Status narrow =
      WithRenamed("layer_norm_q.weight\":{\"dtype\":\"F32\",\"shape\":[48]",
                  "layer_norm_q.weight\":{\"dtype\":\"F32\",\"shape\":[16]");
  EXPECT_TRUE(absl::IsInvalidArgument(narrow)) << narrow;
}

}  // namespace
}  // namespace attendant
