// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

// The fields without which it is refused.
std::string DebertaV2(const std::string& more = "") {
  return Bert("deberta-v2", absl::StrCat(R"(, "relative_attention": true, "share_att_key": true,
      "pos_att_type": "p2c|c2p", "position_buckets": 16)",
                                         more));
}

TEST(DebertaV2Test, IsBertWithDisentangledScores) {
  const auto config = Read(DebertaV2(R"(, "position_biased_input": false, "type_vocab_size": 0,
      "norm_rel_ebd": "layer_norm", "max_relative_positions": -1)"));
  ASSERT_TRUE(config.ok()) << config.status();
  const EncoderConfig& encoder = config->encoder;
  EXPECT_EQ(encoder.score_bias, ScoreBias::kDisentangled);
  EXPECT_EQ(encoder.bias_buckets, 32);
  EXPECT_EQ(encoder.bias_max_distance, 42);
  EXPECT_FLOAT_EQ(encoder.score_scale(), 1.0f / 6);  // 1 / sqrt(12 * 3)
  EXPECT_EQ(encoder.positions, Positions::kNone);
  EXPECT_EQ(encoder.segment_types, 1);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-7f);
  EXPECT_FALSE(config->segments);
  EXPECT_TRUE(config->score_bias_norm);
}

TEST(DebertaV2Test, HasTransformersDefaults) {
  const auto config =
      Read(absl::StrReplaceAll(DebertaV2(R"(, "max_relative_positions": 20, "type_vocab_size": 2,
      "norm_rel_ebd": "none")"),
                               {{"\"p2c|c2p\"", R"(["c2p", "p2c"])"}}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.positions, Positions::kLearned);
  EXPECT_EQ(config->encoder.bias_max_distance, 20);
  EXPECT_EQ(config->encoder.segment_types, 2);
  EXPECT_TRUE(config->segments);
  EXPECT_FALSE(config->score_bias_norm);
}

// Texts have up to 42 tokens: half of 82 buckets are enough for each distance to have its own.
TEST(DebertaV2Test, TextsMayBeTooShortForDistancesThatShareBuckets) {
  const auto read = [](const char* buckets, const char* more) {
    return Read(absl::StrReplaceAll(DebertaV2(more),
                                    {{"buckets\": 16", absl::StrCat("buckets\": ", buckets)}}));
  };
  const char* const near = R"(, "max_relative_positions": 9)";
  EXPECT_TRUE(absl::IsInvalidArgument(read("80", near).status()));
  for (const auto& [buckets, most] : {std::pair("82", 43), std::pair("256", 130)}) {
    for (const char* more : {"", near}) {
      const auto config = read(buckets, more);
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_EQ(config->encoder.bias_max_distance, most);
    }
  }
}

TEST(DebertaV2Test, RefusesByName) {
  ExpectUnimplemented(Bert("deberta-v2"), "`relative_attention` is false");
  const std::pair<const char*, const char*> more[] = {
      {R"(, "conv_kernel_size": 3)", "`conv_kernel_size` is 3"},
      {R"(, "attention_head_size": 16)", "`attention_head_size` is 16"},
      {R"(, "norm_rel_ebd": "layer_norm|batch_norm")", "`norm_rel_ebd` is `batch_norm`"}};
  for (const auto& [fields, message] : more) ExpectUnimplemented(DebertaV2(fields), message);
  const std::tuple<const char*, const char*, const char*> other[] = {
      {"share_att_key\": true", "share_att_key\": false", "`share_att_key` is false"},
      {"position_buckets\": 16", "position_buckets\": -1", "`position_buckets` is -1"},
      {"p2c|c2p", "c2p", "`pos_att_type` is `c2p`"}};
  for (const auto& [from, to, message] : other) {
    ExpectUnimplemented(absl::StrReplaceAll(DebertaV2(), {{from, to}}), message);
  }
}

TEST(DebertaV2Test, RefusesWhatCannotBe) {
  const std::pair<std::string, const char*> invalid[] = {
      {absl::StrReplaceAll(DebertaV2(), {{"buckets\": 16", "buckets\": 15"}}),
       "config.json: `position_buckets` is 15, it must be a multiple of 2"},
      {DebertaV2(R"(, "max_relative_positions": 9)"),
       "config.json: `max_relative_positions` is 9, it must be at least 10 where "
       "`position_buckets` is 16"},
      {absl::StrReplaceAll(DebertaV2(), {{"\"p2c|c2p\"", "7"}}), "pos_att_type"},
      {absl::StrReplaceAll(DebertaV2(), {{"\"p2c|c2p\"", "[7]"}}), "pos_att_type"}};
  for (const auto& [text, message] : invalid) {
    const absl::Status status = Read(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
