// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/base/regular_file.h"
#include "tests/kernels/checkpoints/families/family_support.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kEsm2[] = R"(, "position_embedding_type": "rotary", "token_dropout": true,
    "emb_layer_norm_before": false, "mask_token_id": 32, "pad_token_id": 1, "is_folding_model": false,
    "vocab_list": null, "esmfold_config": null, "torch_dtype": "float16", "hidden_act": "gelu")";

void ExpectInvalid(const std::string& more, const std::string& message) {
  const absl::Status status = Read(Bert("esm", more)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(EsmTest, Esm2HasRotaryPositionsAndDropsTheMaskToken) {
  const auto config = Read(Bert("esm", kEsm2));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_TRUE(encoder.final_norm && encoder.first_attention_norm && !encoder.embedding_norm);
  EXPECT_EQ(encoder.positions, Positions::kRotary);
  EXPECT_EQ(encoder.rotary, Rotary{});
  EXPECT_EQ(encoder.dropped_token, 32);
  EXPECT_EQ(encoder.embedding_scale, 0.88f);
  EXPECT_EQ(encoder.activation, Activation::kGeluErf);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-12f);
  EXPECT_EQ(encoder.max_positions, 42);
  EXPECT_EQ(config->first_position, 0);
}

TEST(EsmTest, Esm1bHasLearnedPositionsAndANormOfEmbeddings) {
  const auto config = Read(Bert("esm", R"(, "emb_layer_norm_before": true, "pad_token_id": 1)"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.positions, Positions::kLearned);
  EXPECT_TRUE(config->encoder.embedding_norm);
  EXPECT_EQ(config->first_position, 2);
  EXPECT_EQ(config->encoder.max_positions, 40);
  EXPECT_EQ(config->encoder.dropped_token, -1) << "token_dropout is false where it is absent";
  EXPECT_EQ(config->encoder.embedding_scale, 1);
  ExpectInvalid("", "pad_token_id");
  ExpectInvalid(R"(, "pad_token_id": 41)", "pad_token_id");
}

TEST(EsmTest, OthersAreRefusedByName) {
  ExpectUnimplemented(Bert("esm", R"(, "is_folding_model": true)"), "`is_folding_model` is true");
  ExpectUnimplemented(Bert("esm", R"(, "position_embedding_type": "relative_key")"),
                      "supported is absolute, rotary");
  ExpectUnimplemented(Bert("esm", R"(, "is_decoder": true)"), "`is_decoder` is true");
  const std::string rotary = R"(, "position_embedding_type": "rotary")";
  ExpectUnimplemented(Bert("esm", rotary + R"(, "head_dim": 10)"), "`head_dim` is 10");
  ExpectUnimplemented(Bert("esm", rotary + R"(, "rope_scaling": {"type": "linear"})"),
                      "`rope_scaling` is there");
  const std::string drops = rotary + R"(, "token_dropout": true)";
  ExpectInvalid(drops, "mask_token_id");
  for (const char* id : {"-1", "97", "9223372036854775807", "1.5", "null"}) {
    ExpectInvalid(absl::StrCat(drops, R"(, "mask_token_id": )", id), "mask_token_id");
  }
}

// The tiny checkpoint, whose rates are rounded to f16, with other words in its files.
absl::StatusOr<Checkpoint> LoadWith(const char* word, const char* other) {
  const std::string golden = GoldenDirectory("tiny_esm");
  TempDirectory directory;
  for (const char* name : {"config.json", "model.safetensors"}) {
    WriteFile(directory / name,
              absl::StrReplaceAll(*ReadTextFile(absl::StrCat(golden, "/", name), 1 << 20),
                                  {{word, other}}));
  }
  return LoadCheckpoint(directory.path());
}

TEST(EsmTest, StoredRatesAreThoseOfAnyOfTheirNames) {
  const auto saved = LoadWith("", "");
  ASSERT_TRUE(saved.ok()) << saved.status();
  const Rotary computed;
  ASSERT_EQ(saved->config.rotary.rates.size(), 8u);
  EXPECT_EQ(saved->config.rotary.rates[0], 1.0f);
  EXPECT_NE(saved->config.rotary.rates[1], computed.Rate(1, 16));
  EXPECT_NEAR(saved->config.rotary.rates[1], computed.Rate(1, 16), 1e-4);
  const auto old = LoadWith("layer.*.", "layer.0.");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->config.rotary.rates, saved->config.rotary.rates);
  const auto none = LoadWith("layer.*.", "layer.x.");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->config.rotary.rates, testing::IsEmpty());
  const auto learned = LoadWith("\"rotary\"", "\"absolute\"");
  EXPECT_THAT(std::string(learned.status().message()),
              HasSubstr("position_embeddings.weight` is missing"));
  const auto heads = LoadWith("heads\": 2", "heads\": 4");
  EXPECT_TRUE(absl::IsInvalidArgument(heads.status())) << heads.status();
  EXPECT_THAT(std::string(heads.status().message()), HasSubstr("inv_freq"));
}

}  // namespace
}  // namespace attendant
