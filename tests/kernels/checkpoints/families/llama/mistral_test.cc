// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

std::string Mistral(const std::string& more) {
  return Bert("mistral", absl::StrCat(", \"num_key_value_heads\": 2", more));
}

// transformers counts the query's own token where the mask is causal, else those to either side.
TEST(MistralTest, AllLayersAttendToTheWindow) {
  const auto config = Read(Mistral(", \"sliding_window\": 8, \"rope_theta\": 500"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_TRUE(encoder.causal);
  EXPECT_EQ(encoder.window, 7);
  EXPECT_EQ(encoder.local_layers.to_ullong(), 0b111u);
  EXPECT_EQ(encoder.local_rotary.base, 500);
  EXPECT_EQ(encoder.key_heads(), 2);
  EXPECT_FALSE(config->biases.qkv || config->biases.attention_output || config->biases.ffn_up);
  const auto both = Read(Mistral(", \"sliding_window\": 8, \"is_causal\": false"));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_FALSE(both->encoder.causal);
  EXPECT_EQ(both->encoder.window, 8);
}

TEST(MistralTest, TheWindowIsTransformersWhereNoneIsNamed) {
  EXPECT_EQ(Read(Mistral(""))->encoder.window, 4095);
  const auto none = Read(Mistral(", \"sliding_window\": null"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->encoder.local_layers.any());
}

// transformers takes a Mistral with this list for a Ministral: one mask for each layer.
TEST(MistralTest, LayersHaveTheirTypesWhereTheyAreNamed) {
  const auto some = Read(Mistral(
      R"(, "sliding_window": 8, "rope_theta": 500,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"])"));
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->encoder.window, 7);
  EXPECT_EQ(some->encoder.local_layers.to_ullong(), 0b101u);
  EXPECT_EQ(some->encoder.local_rotary.base, 500);
  const std::string all_full =
      R"(, "layer_types": ["full_attention", "full_attention", "full_attention"])";
  // Without a local layer transformers takes any window.
  for (const char* window : {"8", "null", "0", "-4", "0, \"is_causal\": false"}) {
    const auto full = Read(Mistral(absl::StrCat(", \"sliding_window\": ", window, all_full)));
    ASSERT_TRUE(full.ok()) << full.status();
    EXPECT_FALSE(full->encoder.local_layers.any());
  }
  EXPECT_EQ(Read(Mistral(", \"layer_types\": null"))->encoder.local_layers.to_ullong(), 0b111u);
}

// transformers counts the token itself where the mask is causal, and only the others where not.
TEST(MistralTest, TheSmallestWindowIsTheTokenItself) {
  const auto causal = Read(Mistral(", \"sliding_window\": 1"));
  ASSERT_TRUE(causal.ok()) << causal.status();
  EXPECT_EQ(causal->encoder.window, 0);
  EXPECT_TRUE(causal->encoder.causal);
  const auto both = Read(Mistral(", \"sliding_window\": 0, \"is_causal\": false"));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->encoder.window, 0);
  EXPECT_FALSE(both->encoder.causal);
  const auto neighbours = Read(Mistral(", \"sliding_window\": 1, \"is_causal\": false"));
  EXPECT_EQ(neighbours->encoder.window, 1);
}

TEST(MistralTest, RefusesWhatMakesNoSense) {
  for (const char* window : {"0", "-4", "-9223372036854775808", "-1, \"is_causal\": false"}) {
    const absl::Status status =
        Read(Mistral(absl::StrCat(", \"sliding_window\": ", window))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("`sliding_window` is"));
  }
  const absl::Status one_local = Read(Mistral(R"(, "sliding_window": 0, "layer_types":
      ["full_attention", "sliding_attention", "full_attention"])"))
                                     .status();
  EXPECT_TRUE(absl::IsInvalidArgument(one_local)) << one_local;
  ExpectUnimplemented(Mistral(", \"use_bidirectional_attention\": true"),
                      "`use_bidirectional_attention` is true");
  ExpectUnimplemented(Mistral(R"(, "sliding_window": null, "layer_types": ["sliding_attention"])"),
                      "`layer_types` is `sliding_attention`");
  EXPECT_TRUE(
      absl::IsInvalidArgument(Read(Mistral(R"(, "layer_types": ["sliding_attention"])")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Read(Bert("mistral")).status()));
}

}  // namespace
}  // namespace attendant
