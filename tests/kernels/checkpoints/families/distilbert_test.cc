// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

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

TEST(DistilBertTest, ItsEpsilonIsNoFieldOfTheConfig) {
  for (const char* value : {"1e-5", "7"}) {
    const auto config = Read(absl::StrReplaceAll(
        kDistilBert, {{"{", absl::StrCat("{\"layer_norm_eps\": ", value, ", ")}}));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->encoder.layer_norm_epsilon, 1e-12f);
  }
}

}  // namespace
}  // namespace attendant
