// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

std::string Qwen2(const std::string& more) {
  return Bert("qwen2", absl::StrCat(", \"num_key_value_heads\": 2", more));
}

std::string WithCode(const std::string& code, const std::string& more) {
  return Qwen2(absl::StrCat(", \"auto_map\": {\"AutoModel\": \"", code, "\"}", more));
}

TEST(Qwen2Test, IsTheBlockWithBiasesOfQueriesKeysAndValues) {
  const auto config = Read(Qwen2(R"(, "rope_theta": 1000000, "rms_norm_eps": 1e-5,
      "sliding_window": 131072, "max_window_layers": 21, "use_sliding_window": false)"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.head_dim(), 12);
  EXPECT_EQ(encoder.key_heads(), 2);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_TRUE(encoder.causal && encoder.gated_ffn && encoder.final_norm);
  EXPECT_FALSE(encoder.embedding_norm || encoder.local_layers.any());
  EXPECT_EQ(encoder.query_key_norm, QueryKeyNorm::kNone);
  EXPECT_EQ(encoder.activation, Activation::kSilu);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-5f);
  EXPECT_EQ(encoder.rotary.base, 1000000);
  EXPECT_TRUE(config->biases.qkv);
  EXPECT_FALSE(config->biases.attention_output || config->biases.ffn_up ||
               config->biases.ffn_down || config->biases.norms);
  const auto wide = Read(Qwen2(", \"head_dim\": 16"));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(wide->encoder.head_dim(), 16);
}

TEST(Qwen2Test, IsCausalWhereItSaysNothingElse) {
  EXPECT_TRUE(Read(Qwen2(", \"is_causal\": true"))->encoder.causal);
  EXPECT_FALSE(Read(Qwen2(", \"is_causal\": false"))->encoder.causal);
}

TEST(Qwen2Test, TheCodeOfGteSaysWhetherItIsCausal) {
  for (const char* code : {"modeling_qwen.Qwen2Model",
                           "Alibaba-NLP/gte-Qwen2-1.5B-instruct--modeling_qwen.Qwen2Model"}) {
    const auto config = Read(WithCode(code, ", \"is_causal\": false"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_FALSE(config->encoder.causal);
    EXPECT_TRUE(Read(WithCode(code, ", \"is_causal\": true"))->encoder.causal);
    const absl::Status status = Read(WithCode(code, "")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("lacks the field `is_causal`"));
  }
  ExpectUnimplemented(WithCode("modeling.Other", ", \"is_causal\": false"), "`auto_map`");
}

TEST(Qwen2Test, RefusesByName) {
  for (const char* field : {"use_sliding_window", "use_bidirectional_attention"}) {
    ExpectUnimplemented(Qwen2(absl::StrCat(", \"", field, "\": true")), field);
  }
  ExpectUnimplemented(Qwen2(", \"layer_types\": [\"sliding_attention\"]"), "`layer_types`");
  const absl::Status status = Read(Bert("qwen2")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("`num_key_value_heads`"));
}

}  // namespace
}  // namespace attendant
