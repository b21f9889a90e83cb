// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

std::string Llama(const std::string& more) { return Bert("llama", more); }

TEST(LlamaTest, IsTheBlockUnderACausalMask) {
  const auto config = Read(Llama(", \"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-5"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.head_dim(), 12);
  EXPECT_EQ(encoder.key_heads(), 2);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_TRUE(encoder.causal && encoder.gated_ffn && encoder.final_norm);
  EXPECT_FALSE(encoder.local_layers.any());
  EXPECT_EQ(encoder.query_key_norm, QueryKeyNorm::kNone);
  EXPECT_EQ(encoder.activation, Activation::kSilu);
  EXPECT_EQ(encoder.rotary.base, 10000);
  EXPECT_FALSE(config->biases.qkv || config->biases.ffn_up || config->biases.norms);
}

TEST(LlamaTest, HasTransformersDefaults) {
  const auto config = Read(Llama(", \"head_dim\": null, \"num_key_value_heads\": null"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.head_dim(), 12);
  EXPECT_EQ(config->encoder.key_heads(), 4);
  EXPECT_EQ(config->encoder.layer_norm_epsilon, 1e-6f);
  const auto other = Read(Llama(", \"head_dim\": 16, \"is_causal\": false"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->encoder.head_dim(), 16);
  EXPECT_FALSE(other->encoder.causal);
}

TEST(LlamaTest, BiasesAreThoseOfTheConfig) {
  const auto attention = Read(Llama(", \"attention_bias\": true"));
  ASSERT_TRUE(attention.ok()) << attention.status();
  EXPECT_TRUE(attention->biases.qkv && attention->biases.attention_output);
  EXPECT_FALSE(attention->biases.ffn_up || attention->biases.ffn_down);
  const auto ffn = Read(Llama(", \"mlp_bias\": true"));
  ASSERT_TRUE(ffn.ok()) << ffn.status();
  EXPECT_TRUE(ffn->biases.ffn_up && ffn->biases.ffn_down);
  EXPECT_FALSE(ffn->biases.qkv);
}

TEST(LlamaTest, NvidiasHasNoMask) {
  const auto plain = Read(Llama(", \"is_causal\": false"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto type = Read(Bert("llama_bidirec", ", \"pooling\": \"avg\""));
  ASSERT_TRUE(type.ok()) << type.status();
  EXPECT_EQ(type->encoder, plain->encoder);
  const auto code = Read(Bert("llama_bidirec", R"(, "auto_map": {"AutoModel":
      "llama_bidirectional_model.LlamaBidirectionalModel"})"));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->encoder, plain->encoder);
  const auto other_type = Read(Llama(R"(, "auto_map": {"AutoModel":
      "llama_bidirectional_model.LlamaBidirectionalModel"})"));
  ASSERT_TRUE(other_type.ok()) << other_type.status();
  EXPECT_EQ(other_type->encoder, plain->encoder) << "the code decides";
}

TEST(LlamaTest, RefusesByName) {
  ExpectUnimplemented(Llama(", \"use_bidirectional_attention\": true"),
                      "`use_bidirectional_attention` is true");
  ExpectUnimplemented(Llama(R"(, "auto_map": {"AutoModel": "x.LlamaModel"})"), "`auto_map`");
}

}  // namespace
}  // namespace attendant
