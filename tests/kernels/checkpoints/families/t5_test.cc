// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/base/regular_file.h"
#include "tests/kernels/checkpoints/families/family_support.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

// Six heads of 16 on a hidden size of 32, which they do not divide.
std::string T5(const std::string& more) {
  return absl::StrCat(R"({"model_type": "t5", "num_layers": 3, "num_heads": 6, "d_model": 32,
      "d_ff": 112, "vocab_size": 97)",
                      more, "}");
}

TEST(T5Test, IsTheBlockWithOtherSwitches) {
  const auto config = Read(T5(R"(, "d_kv": 16, "is_encoder_decoder": true, "n_positions": 42)"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_TRUE(encoder.final_norm);
  EXPECT_FALSE(encoder.embedding_norm || encoder.gated_ffn);
  EXPECT_EQ(encoder.activation, Activation::kRelu);
  EXPECT_EQ(encoder.positions, Positions::kNone);
  EXPECT_EQ(encoder.score_bias, ScoreBias::kBuckets);
  EXPECT_EQ(encoder.bias_buckets, 32);
  EXPECT_EQ(encoder.bias_max_distance, 128);
  EXPECT_EQ(encoder.score_scale(), 1);
  EXPECT_EQ(encoder.context_width(), 96);
  EXPECT_EQ(encoder.max_positions, 42);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-6f);
  EXPECT_FALSE(config->biases.qkv || config->biases.norms);
}

TEST(T5Test, ReadsItsOtherFields) {
  const auto config = Read(T5(R"(, "d_kv": 16, "feed_forward_proj": "gated-gelu",
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20)"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->encoder.gated_ffn);
  EXPECT_EQ(config->encoder.activation, Activation::kGeluTanh);
  EXPECT_EQ(config->encoder.bias_buckets, 8);
  EXPECT_EQ(config->encoder.bias_max_distance, 20);
  EXPECT_EQ(config->encoder.max_positions, 512);
}

// Fields that follow from feed_forward_proj in transformers, unless they are there.
TEST(T5Test, OtherFieldsOfTheFfnMayOnlyAgree) {
  for (const char* more : {R"(, "d_kv": 16, "dense_act_fn": "relu", "is_gated_act": false)",
                           R"(, "d_kv": 16, "feed_forward_proj": "gated-gelu",
                              "dense_act_fn": "gelu_new", "is_gated_act": true)"}) {
    EXPECT_TRUE(Read(T5(more)).ok()) << Read(T5(more)).status();
  }
  ExpectUnimplemented(T5(R"(, "d_kv": 16, "dense_act_fn": "silu")"), "`dense_act_fn` is `silu`");
  ExpectUnimplemented(T5(R"(, "d_kv": 16, "is_gated_act": true)"), "`is_gated_act` is true");
  ExpectUnimplemented(T5(R"(, "d_kv": 16, "feed_forward_proj": "gated-gelu",
                            "dense_act_fn": "gelu")"),
                      "`dense_act_fn` is `gelu`");
  ExpectUnimplemented(T5(R"(, "d_kv": 16, "feed_forward_proj": "gated-gelu",
                            "is_gated_act": false)"),
                      "`is_gated_act` is false");
}

// As transformers: `shared` is only of the decoder where the encoder has a table of its own.
TEST(T5Test, TheEncodersOwnTableCounts) {
  const std::string golden = GoldenDirectory("tiny_t5");
  const std::string file = *ReadTextFile(golden + "/model.safetensors", 1 << 20);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const std::string header =
      absl::StrReplaceAll(file.substr(sizeof(header_bytes), header_bytes),
                          {{"\"shared.weight\"", "\"encoder.embed_tokens.weight\""}});
  const std::string data = file.substr(sizeof(header_bytes) + header_bytes);
  const std::string other(61 * 32 * sizeof(float), '\0');
  const std::string shared =
      absl::StrCat(R"({"shared.weight":{"dtype":"F32","shape":[61,32],"data_offsets":[)",
                   data.size(), ",", data.size() + other.size(), "]},");
  const auto expected = LoadCheckpoint(golden);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const bool both : {false, true}) {
    const TempDirectory directory;
    WriteFile(directory / "config.json", *ReadTextFile(golden + "/config.json", 1 << 20));
    WriteFile(directory / "model.safetensors",
              both ? SafetensorsBytes(shared + header.substr(1), data + other)
                   : SafetensorsBytes(header, data));
    const auto checkpoint = LoadCheckpoint(directory.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto& table = checkpoint->weights.token_embedding;
    ASSERT_EQ(table.dims(), expected->weights.token_embedding.dims());
    EXPECT_EQ(std::memcmp(table.data(), expected->weights.token_embedding.data(), other.size()), 0);
  }
}

TEST(T5Test, RefusesByName) {
  ExpectUnimplemented(T5(R"(, "d_kv": 16, "feed_forward_proj": "gated-silu")"),
                      "`feed_forward_proj` is `gated-silu`");
  ExpectUnimplemented(T5(R"(, "d_kv": 16, "is_decoder": true)"), "`is_decoder` is true");
  const std::pair<const char*, const char*> invalid[] = {
      {"", "lacks the field `d_kv`"},
      {R"(, "d_kv": 0)", "d_kv is 0"},
      {R"(, "d_kv": 16, "relative_attention_num_buckets": 6)", "bias_buckets is 6"},
      {R"(, "d_kv": 16, "n_positions": 0)", "max_positions is 0"}};
  for (const auto& [more, message] : invalid) {
    const absl::Status status = Read(T5(more)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
