// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::string NeoBert(const std::string& more, const std::string& code = "model.NeoBERT") {
  return absl::StrCat("{\"model_type\": \"neobert\", \"auto_map\": {\"AutoModel\": \"", code, "\"}",
                      more,
                      ", \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
                      "\"hidden_size\": 48, \"intermediate_size\": 112, \"vocab_size\": 97, "
                      "\"max_length\": 42}");
}

TEST(NeoBertTest, IsFoundByItsCode) {
  const auto config = Read(NeoBert(", \"norm_eps\": 1e-5"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_EQ(encoder.norm_kind, NormKind::kRms);
  EXPECT_TRUE(encoder.final_norm && encoder.gated_ffn);
  EXPECT_FALSE(encoder.embedding_norm || encoder.causal);
  EXPECT_EQ(encoder.activation, Activation::kSilu);
  EXPECT_EQ(encoder.ffn, 80) << "two thirds of 112 are 74";
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-5f);
  EXPECT_EQ(encoder.rotary.base, 10000);
  EXPECT_EQ(encoder.max_positions, 42);
  EXPECT_EQ(Read(NeoBert(""))->encoder.layer_norm_epsilon, 1e-6f);
  EXPECT_TRUE(Read(NeoBert("", "chandar-lab/NeoBERT--model.NeoBERT")).ok());
  EXPECT_TRUE(Read(NeoBert(R"(, "hidden_act": "SwiGLU", "rope": true, "ngpt": false)")).ok());
}

TEST(NeoBertTest, RefusesByName) {
  ExpectUnimplemented(NeoBert(R"(, "hidden_act": "GELU")"), "`hidden_act` is `GELU`");
  ExpectUnimplemented(NeoBert(R"(, "rms_norm": false)"), "`rms_norm` is false");
  ExpectUnimplemented(NeoBert(R"(, "rope": false)"), "`rope` is false");
  ExpectUnimplemented(NeoBert(R"(, "ngpt": true)"), "`ngpt` is true");
  ExpectUnimplemented(NeoBert("", "other.NeoBERT"), "`auto_map`");
  EXPECT_TRUE(absl::IsInvalidArgument(Read(NeoBert(R"(, "norm_eps": 0)")).status()));
}

}  // namespace
}  // namespace attendant
