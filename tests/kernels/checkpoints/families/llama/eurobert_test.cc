// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

std::string EuroBert(const std::string& more) {
  return Bert("eurobert", absl::StrCat(", \"head_dim\": 16, \"num_key_value_heads\": 2", more));
}

TEST(EuroBertTest, IsFoundByItsTypeAndByItsCode) {
  const auto config = Read(EuroBert(R"(, "rope_theta": 250000, "mlp_bias": true)"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_TRUE(encoder.final_norm && encoder.gated_ffn);
  EXPECT_FALSE(encoder.embedding_norm || encoder.causal);
  EXPECT_EQ(encoder.query_key_norm, QueryKeyNorm::kNone);
  EXPECT_EQ(encoder.activation, Activation::kSilu);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-5f);
  EXPECT_EQ(encoder.key_heads(), 2);
  EXPECT_EQ(encoder.rotary.base, 250000);
  EXPECT_TRUE(config->biases.ffn_up && config->biases.ffn_down && !config->biases.qkv);
  const auto coded = Read(EuroBert(R"(, "auto_map": {"AutoModel":
      "EuroBERT/EuroBERT-210m--modeling_eurobert.EuroBertModel"}, "mlp_bias": true,
      "rope_parameters": {"rope_theta": 250000, "rope_type": "default"})"));
  ASSERT_TRUE(coded.ok()) << coded.status();
  EXPECT_TRUE(coded->encoder == encoder);
}

TEST(EuroBertTest, HeadsOfItsOwnNeedNotBeNamed) {
  for (const char* fields : {"", R"(, "head_dim": null, "num_key_value_heads": null)"}) {
    const auto config = Read(Bert("eurobert", fields));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->encoder.head_dim(), 12);
    EXPECT_EQ(config->encoder.key_heads(), 4);
  }
}

TEST(EuroBertTest, RefusesByName) {
  ExpectUnimplemented(EuroBert(R"(, "rope_scaling": {"type": "yarn"})"), "`rope_scaling`");
  ExpectUnimplemented(EuroBert(R"(, "rope_parameters": {"rope_type": "yarn"})"),
                      "`rope_type` is `yarn`");
  ExpectUnimplemented(EuroBert(R"(, "hidden_act": "mish")"), "`hidden_act` is `mish`");
}

}  // namespace
}  // namespace attendant
