// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

std::string Qwen3(const std::string& more) {
  return Bert("qwen3", absl::StrCat(", \"head_dim\": 16, \"num_key_value_heads\": 2", more));
}

TEST(Qwen3Test, IsTheBlockWithOtherSwitches) {
  const auto config = Read(Qwen3(R"(, "rope_theta": 1000000, "rms_norm_eps": 1e-6,
      "sliding_window": null, "max_window_layers": 28, "use_sliding_window": false)"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.head_dim(), 16);
  EXPECT_EQ(encoder.key_heads(), 2);
  EXPECT_EQ(encoder.context_width(), 64);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_TRUE(encoder.causal && encoder.gated_ffn && encoder.final_norm);
  EXPECT_EQ(encoder.query_key_norm, QueryKeyNorm::kHead);
  EXPECT_FALSE(encoder.embedding_norm);
  EXPECT_EQ(encoder.activation, Activation::kSilu);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-6f);
  EXPECT_EQ(encoder.rotary.base, 1000000);
  EXPECT_FALSE(config->biases.qkv || config->biases.norms);
  const auto now = Read(Qwen3(R"(, "rope_parameters": {"rope_theta": 1000000, "rope_type":
      "default"}, "layer_types": ["full_attention", "full_attention", "full_attention"])"));
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_TRUE(now->encoder == encoder);
  const auto bidirectional = Read(Qwen3(", \"is_causal\": false"));
  ASSERT_TRUE(bidirectional.ok()) << bidirectional.status();
  EXPECT_FALSE(bidirectional->encoder.causal);
  const auto biased = Read(Qwen3(", \"attention_bias\": true"));
  ASSERT_TRUE(biased.ok()) << biased.status();
  EXPECT_TRUE(biased->biases.qkv && biased->biases.attention_output && !biased->biases.ffn_down);
}

TEST(Qwen3Test, PerplexitysHasNoMask) {
  const auto plain = Read(Qwen3(", \"is_causal\": false"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto code = Read(Bert("bidirectional_pplx_qwen3", R"(, "head_dim": 16,
      "num_key_value_heads": 2, "use_bidirectional_attention": true,
      "auto_map": {"AutoModel": "modeling.PPLXQwen3Model"})"));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->encoder, plain->encoder);
}

TEST(Qwen3Test, RefusesByName) {
  for (const char* field : {"use_sliding_window", "use_bidirectional_attention"}) {
    ExpectUnimplemented(Qwen3(absl::StrCat(", \"", field, "\": true")), field);
  }
  ExpectUnimplemented(Qwen3(", \"rope_scaling\": {\"type\": \"yarn\"}"), "`rope_scaling`");
  ExpectUnimplemented(Qwen3(", \"layer_types\": [\"sliding_attention\"]"), "`layer_types`");
  const std::pair<std::string, const char*> invalid[] = {
      {Bert("qwen3"), "lacks the field `head_dim`"},
      {Bert("qwen3", ", \"head_dim\": 16"), "lacks the field `num_key_value_heads`"},
      {Bert("qwen3", ", \"head_dim\": 0, \"num_key_value_heads\": 2"), "head_dim is 0"},
      {Bert("qwen3", ", \"head_dim\": 15, \"num_key_value_heads\": 2"), "head_dim is 15"},
      {Bert("qwen3", ", \"head_dim\": 16, \"num_key_value_heads\": 0"), "heads is 0"},
      {Bert("qwen3", ", \"head_dim\": 16, \"num_key_value_heads\": 3"), "kv_heads, 3"}};
  for (const auto& [text, message] : invalid) {
    const absl::Status status = Read(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
