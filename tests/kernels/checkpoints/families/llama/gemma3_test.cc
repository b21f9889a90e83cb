// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

std::string Gemma3(const std::string& more, const std::string& bidirectional = "true") {
  return Bert("gemma3_text", absl::StrCat(R"(, "head_dim": 16, "num_key_value_heads": 1,
                           "use_bidirectional_attention": )",
                                          bidirectional, more));
}

TEST(Gemma3Test, OldAndNewFieldsSayTheSame) {
  const auto now = Read(Gemma3(R"(, "sliding_window": 10, "query_pre_attn_scalar": 25,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
      "rope_parameters": {"full_attention": {"rope_theta": 80000.0, "rope_type": "default"},
      "sliding_attention": {"rope_theta": 5000.0, "rope_type": "default"}})"));
  ASSERT_TRUE(now.ok()) << now.status();
  const EncoderConfig& encoder = now->encoder;
  EXPECT_EQ(encoder.norm_place, NormPlace::kBoth);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_TRUE(encoder.gated_ffn && encoder.final_norm);
  EXPECT_EQ(encoder.query_key_norm, QueryKeyNorm::kHead);
  EXPECT_FALSE(encoder.embedding_norm || encoder.causal);
  EXPECT_EQ(encoder.activation, Activation::kGeluTanh);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-6f);
  EXPECT_EQ(encoder.key_heads(), 1);
  EXPECT_EQ(encoder.window, 5);
  EXPECT_EQ(encoder.local_layers.to_ullong(), 0b101u);
  EXPECT_EQ(encoder.rotary.base, 80000);
  EXPECT_EQ(encoder.local_rotary.base, 5000);
  EXPECT_FLOAT_EQ(encoder.score_scale(), 0.2f);
  EXPECT_FLOAT_EQ(encoder.embedding_scale, 6.9282032f);  // sqrt(48)
  EXPECT_EQ(now->norm_offset, 1);
  EXPECT_FALSE(now->biases.qkv || now->biases.norms);
  const auto old = Read(Gemma3(R"(, "sliding_window": 10, "query_pre_attn_scalar": 25,
      "sliding_window_pattern": 2, "rope_theta": 80000.0, "rope_local_base_freq": 5000.0)"));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_TRUE(old->encoder == encoder);
}

TEST(Gemma3Test, HasTransformersDefaults) {
  const auto config = Read(Gemma3(R"(, "attention_bias": true, "final_logit_softcapping": null)"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.window, 2048);
  EXPECT_EQ(config->encoder.local_layers.to_ullong(), 0b111u);
  EXPECT_EQ(config->encoder.rotary.base, 1000000);
  EXPECT_EQ(config->encoder.local_rotary.base, 10000);
  EXPECT_EQ(config->encoder.score_scale(), 1.0f / 16);
  EXPECT_TRUE(config->biases.qkv && config->biases.attention_output && !config->biases.ffn_up);
}

// transformers rounds half of `sliding_window` down.
TEST(Gemma3Test, TheSmallestWindowIsTheTokenItself) {
  for (const char* more : {R"(, "sliding_window": 1)", R"(, "sliding_window": 0)"}) {
    const auto config = Read(Gemma3(more));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->encoder.window, 0);
  }
}

TEST(Gemma3Test, ThePatternHasOneName) {
  const auto config =
      Read(Gemma3(R"(, "_sliding_window_pattern": 1, "sliding_window_pattern": 2)"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.local_layers.to_ullong(), 0b101u);
  EXPECT_EQ(Read(Gemma3(R"(, "_sliding_window_pattern": 1)"))->encoder.local_layers.to_ullong(),
            0b111u);
}

TEST(Gemma3Test, RefusesByName) {
  ExpectUnimplemented(Gemma3("", "false"), "`use_bidirectional_attention` is false");
  ExpectUnimplemented(Gemma3("", "null"), "`use_bidirectional_attention` is false");
  ExpectUnimplemented(Gemma3(R"(, "is_causal": false)"), "`is_causal` is false");
  EXPECT_TRUE(Read(Gemma3(R"(, "is_causal": true)")).ok());
  ExpectUnimplemented(Gemma3(R"(, "attn_logit_softcapping": 50.0)"), "`attn_logit_softcapping`");
  ExpectUnimplemented(Gemma3(R"(, "rope_scaling": {"type": "linear"})"), "`rope_scaling`");
  ExpectUnimplemented(Gemma3(R"(, "layer_types": ["chunked_attention", "", ""])"),
                      "`layer_types` is `chunked_attention`");
  const std::pair<const char*, const char*> invalid[] = {
      {R"(, "sliding_window": -1)", "`sliding_window` is -1"},
      {R"(, "sliding_window_pattern": 0)", "`sliding_window_pattern` is 0"},
      {R"(, "query_pre_attn_scalar": 0)", "`query_pre_attn_scalar` is 0"},
      {R"(, "rope_theta": -1)", "rotary has base -1"}};
  for (const auto& [more, message] : invalid) {
    const absl::Status status = Read(Gemma3(more)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
