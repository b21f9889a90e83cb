// SPDX-License-Identifier: Apache-2.0
// The angles of rotary positions are those that transformers 5 reads of the same fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

using testing::HasSubstr;

// Families that transformers computes itself, with one base for all layers.
constexpr const char* kOneBase[] = {
    "eurobert", "gte", "jina_embeddings_v3", "llama", "mistral", "nomic_bert", "qwen2", "qwen3"};

// With the fields that some families need.
std::string Config(const std::string& type, const std::string& more) {
  return Bert(type, absl::StrCat(R"(, "head_dim": 12, "num_key_value_heads": 4,
                                 "use_bidirectional_attention": )",
                                 type == "gemma3_text" ? "true" : "false", more));
}

double BaseOf(const std::string& type, const std::string& more) {
  const auto config = Read(Config(type, more));
  EXPECT_TRUE(config.ok()) << type << more << config.status();
  return config.ok() ? config->encoder.rotary.base : 0;
}

TEST(RotaryFieldsTest, TypeIsTheOlderNameOfRopeType) {
  for (const char* type : kOneBase) {
    ExpectUnimplemented(
        Config(type, R"(, "rope_parameters": {"type": "linear", "factor": 4, "rope_theta": 500})"),
        "`rope_parameters`: `type` is `linear`");
    EXPECT_EQ(BaseOf(type, R"(, "rope_parameters": {"type": "default", "rope_theta": 500})"), 500);
    EXPECT_EQ(BaseOf(type, R"(, "rope_parameters": {"type": "linear", "rope_type": "default",
                               "rope_theta": 500})"),
              500);
  }
  for (const char* type : {"gemma3_text", "modernbert"}) {
    ExpectUnimplemented(
        Config(type, R"(, "rope_parameters": {"sliding_attention": {"type": "linear"}})"),
        "`sliding_attention`: `type` is `linear`");
  }
}

TEST(RotaryFieldsTest, RopeScalingCountsInPlaceOfTheParameters) {
  for (const char* type : kOneBase) {
    ExpectUnimplemented(Config(type, R"(, "rope_scaling": {"rope_type": "linear", "factor": 4})"),
                        "`rope_scaling`: `rope_type` is `linear`");
    EXPECT_EQ(BaseOf(type, R"(, "rope_scaling": {"rope_theta": 700}, "rope_parameters":
                               {"rope_theta": 500})"),
              700);
    EXPECT_EQ(BaseOf(type, R"(, "rope_scaling": null, "rope_theta": 500)"), 500);
    EXPECT_EQ(BaseOf(type, R"(, "rope_scaling": {}, "rope_parameters": {"rope_theta": 500})"), 500);
  }
}

TEST(RotaryFieldsTest, RopeThetaCountsWhereTheParametersHaveNone) {
  for (const char* type : kOneBase) {
    EXPECT_EQ(BaseOf(type, R"(, "rope_theta": 500)"), 500) << type;
    EXPECT_EQ(BaseOf(type, R"(, "rope_theta": 500, "rope_parameters": {"rope_type": "default"})"),
              500)
        << type;
    EXPECT_EQ(BaseOf(type, R"(, "rope_theta": 500, "rope_parameters": {"rope_theta": 700})"), 700)
        << type;
  }
}

TEST(RotaryFieldsTest, BasesAreThoseOfTransformersByDefault) {
  EXPECT_EQ(BaseOf("gte", ""), 160000);
  EXPECT_EQ(BaseOf("jina_embeddings_v3", R"(, "rotary_emb_base": 500)"), 20000);
  EXPECT_EQ(BaseOf("nomic_bert", R"(, "rotary_emb_base": 500)"), 1000);
}

// As Llama 3.2's.
constexpr char kLongWaves[] = R"("factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192)";

TEST(RotaryFieldsTest, LongWavesAreThoseOfLlama3) {
  for (const char* type : kOneBase) {
    for (const char* field : {"rope_scaling", "rope_parameters"}) {
      const auto config =
          Read(Config(type, absl::StrCat(R"(, "rope_theta": 500000, ")", field,
                                         R"(": {"rope_type": "llama3", )", kLongWaves, "}")));
      ASSERT_TRUE(config.ok()) << type << config.status();
      EXPECT_EQ(
          config->encoder.rotary,
          (Rotary{.base = 500000,
                  .long_waves = {.factor = 32, .low = 1, .high = 4, .trained_positions = 8192}}));
    }
  }
}

TEST(RotaryFieldsTest, ThePositionsOfTheTrainingCountOutsideOfTheParameters) {
  for (const char* type : kOneBase) {
    for (const char* field : {"rope_scaling", "rope_parameters"}) {
      const auto config =
          Read(Config(type, absl::StrCat(R"(, "original_max_position_embeddings": 32, ")", field,
                                         R"(": {"rope_type": "llama3", )", kLongWaves, "}")));
      ASSERT_TRUE(config.ok()) << type << config.status();
      EXPECT_EQ(config->encoder.rotary.long_waves.trained_positions, 32) << type;
    }
    const auto plain = Read(Config(type, R"(, "original_max_position_embeddings": 32)"));
    ASSERT_TRUE(plain.ok()) << type << plain.status();
    EXPECT_EQ(plain->encoder.rotary.long_waves, LongWaves()) << type;
  }
}

TEST(RotaryFieldsTest, ThePositionsOfTheTrainingMayBeLeftOut) {
  constexpr char kWaves[] =
      R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0})";
  for (const char* type : kOneBase) {
    const auto outside = Read(Config(
        type,
        absl::StrCat(R"(, "original_max_position_embeddings": 8, "rope_parameters": )", kWaves)));
    ASSERT_TRUE(outside.ok()) << type << outside.status();
    EXPECT_EQ(outside->encoder.rotary.long_waves.trained_positions, 8) << type;
    const auto nowhere = Read(Config(type, absl::StrCat(R"(, "rope_parameters": )", kWaves)));
    ASSERT_TRUE(nowhere.ok()) << type << nowhere.status();
    EXPECT_EQ(nowhere->encoder.rotary.long_waves.trained_positions, nowhere->encoder.max_positions)
        << type;
  }
  const auto local = Read(Config(
      "gemma3_text", absl::StrCat(R"(, "rope_parameters": {"sliding_attention": )", kWaves, "}")));
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_EQ(local->encoder.local_rotary.long_waves.trained_positions, local->encoder.max_positions);
}

TEST(RotaryFieldsTest, LongWavesThatMakeNoSenseAreRefused) {
  for (const char* waves : {R"("factor": 0.5, "low_freq_factor": 1, "high_freq_factor": 4,
           "original_max_position_embeddings": 8)",
                            R"("factor": 2, "low_freq_factor": 4, "high_freq_factor": 4,
           "original_max_position_embeddings": 8)",
                            R"("factor": 2, "low_freq_factor": 0, "high_freq_factor": 4,
           "original_max_position_embeddings": 8)",
                            R"("factor": 2, "low_freq_factor": 1, "high_freq_factor": 4,
           "original_max_position_embeddings": 0)"}) {
    const absl::Status status =
        Read(Config("llama",
                    absl::StrCat(R"(, "rope_scaling": {"rope_type": "llama3", )", waves, "}")))
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rotary has long waves of factor"));
  }
  const absl::Status missing =
      Read(Config("llama", R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8})")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("lacks the field `low_freq_factor`"));
}

TEST(RotaryFieldsTest, BasesOfNoSensibleSizeAreRefused) {
  for (const char* base : {"1e-300", "0.5", "-1", "0", "1e16", "1e300"}) {
    const absl::Status status =
        Read(Config("qwen3", absl::StrCat(R"(, "rope_theta": )", base))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rotary has base"));
  }
  EXPECT_EQ(BaseOf("qwen3", R"(, "rope_theta": 1)"), 1);
  EXPECT_EQ(BaseOf("qwen3", R"(, "rope_theta": 1e15)"), 1e15);
}

}  // namespace
}  // namespace attendant
