// SPDX-License-Identifier: Apache-2.0
// BERT's config.json, and what all families check.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/io/json_file.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

using Fields = std::map<std::string, std::string>;  // name to JSON text

Fields Good() {
  return {{"model_type", "\"bert\""},       {"num_hidden_layers", "3"},
          {"num_attention_heads", "4"},     {"hidden_size", "48"},
          {"intermediate_size", "112"},     {"vocab_size", "97"},
          {"max_position_embeddings", "40"}};
}

absl::StatusOr<EncoderConfig> ReadConfig(const std::string& path) {
  const absl::StatusOr<JsonNode> json = ReadJsonFile(path);
  if (!json.ok()) return json.status();
  const absl::StatusOr<const Family*> family = FindFamily(*json);
  if (!family.ok()) return family.status();
  const absl::StatusOr<FamilyConfig> config = (*family)->read_config(*json);
  if (!config.ok()) return config.status();
  EXPECT_EQ(config->first_position, 0);
  return config->encoder;
}

class ConfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<EncoderConfig> Read(const Fields& fields) {
    const std::string json = absl::StrJoin(fields, ", ", [](std::string* out, const auto& field) {
      absl::StrAppend(out, "\"", field.first, "\": ", field.second);
    });
    WriteFile(directory_ / "config.json", absl::StrCat("{", json, "}"));
    return ReadConfig(directory_ / "config.json");
  }
  absl::StatusOr<EncoderConfig> ReadWith(const std::string& field, const std::string& value) {
    Fields fields = Good();
    fields[field] = value;
    return Read(fields);
  }

  TempDirectory directory_;
};

TEST_F(ConfigTest, DefaultsAreThoseOfTransformers) {
  const absl::StatusOr<EncoderConfig> config = Read(Good());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->layers, 3);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->hidden, 48);
  EXPECT_EQ(config->ffn, 112);
  EXPECT_EQ(config->vocab, 97);
  EXPECT_EQ(config->max_positions, 40);
  EXPECT_EQ(config->segment_types, 2);
  EXPECT_EQ(config->layer_norm_epsilon, 1e-12f);
  EXPECT_EQ(config->activation, Activation::kGeluErf);
}

TEST_F(ConfigTest, Activations) {
  const std::map<std::string, Activation> known = {
      {"gelu", Activation::kGeluErf},       {"gelu_python", Activation::kGeluErf},
      {"gelu_new", Activation::kGeluTanh},  {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"relu", Activation::kRelu},
      {"silu", Activation::kSilu},          {"swish", Activation::kSilu}};
  for (const auto& [name, activation] : known) {
    const absl::StatusOr<EncoderConfig> config = ReadWith("hidden_act", "\"" + name + "\"");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->activation, activation) << name;
  }
}

TEST_F(ConfigTest, EveryRequiredFieldIsMissedByName) {
  for (const auto& [name, value] : Good()) {
    Fields fields = Good();
    fields.erase(name);
    EXPECT_EQ(Read(fields).status().ToString(),
              absl::StrCat("INVALID_ARGUMENT: ", directory_ / "config.json", " lacks the field `",
                           name, "`"));
  }
}

TEST_F(ConfigTest, DimensionsMustBePositiveIntegersOfSense) {
  Fields dimensions = Good();
  dimensions.erase("model_type");
  dimensions["type_vocab_size"] = "";
  for (const auto& [name, unused] : dimensions) {
    for (const char* value :
         {"0", "-1", "-9223372036854775808", "9223372036854775807", "18446744073709551616",
          "4294967297", "3.0", "3e0", "\"3\"", "[3]", "{}", "true"}) {
      const absl::Status status = ReadWith(name, value).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << " " << value << ": " << status;
      EXPECT_THAT(status.ToString(), HasSubstr(directory_ / "config.json"));
    }
  }
}

TEST_F(ConfigTest, Contradictions) {
  EXPECT_THAT(ReadWith("num_attention_heads", "5").status().ToString(),
              HasSubstr("hidden is 48, it must be a multiple of heads, 5"));
  for (const char* epsilon : {"0", "0.0", "-1e-12", "1", "1e300", "1e-320", "\"1e-12\"", "false"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadWith("layer_norm_eps", epsilon).status())) << epsilon;
  }
  EXPECT_THAT(ReadWith("layer_norm_eps", "0").status().ToString(),
              HasSubstr("`layer_norm_eps` is 0"));
  EXPECT_FALSE(ReadWith("layer_norm_eps", "NaN").ok());
  EXPECT_FALSE(ReadWith("embedding_size", "24").ok());
  EXPECT_TRUE(ReadWith("embedding_size", "48").ok());
  EXPECT_FALSE(ReadWith("num_key_value_heads", "2").ok());
}

TEST_F(ConfigTest, OtherArchitecturesAreUnimplemented) {
  const std::map<std::string, std::string> unsupported = {
      {"model_type", "\"gpt2\""},
      {"auto_map", "{\"AutoModel\": \"jina--modeling.JinaBert\"}"},
      {"position_embedding_type", "\"relative_key\""},
      {"is_decoder", "true"},
      {"is_encoder_decoder", "true"},
      {"add_cross_attention", "true"},
      {"hidden_act", "\"mish\""},
      {"pruned_heads", "{\"1\": [0, 2]}"},
  };
  for (const auto& [field, value] : unsupported) {
    const absl::Status status = ReadWith(field, value).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << field << ": " << status;
    EXPECT_THAT(status.ToString(), HasSubstr("`" + field + "`"));
  }
}

TEST_F(ConfigTest, WrongTypesOfTheOthers) {
  for (const char* field :
       {"model_type", "position_embedding_type", "is_decoder", "hidden_act", "pruned_heads"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadWith(field, "7").status())) << field;
  }
}

TEST_F(ConfigTest, HarmlessFieldsAndNullsAreAccepted) {
  EXPECT_TRUE(ReadWith("is_decoder", "false").ok());
  EXPECT_TRUE(ReadWith("pruned_heads", "{}").ok());
  EXPECT_TRUE(ReadWith("position_embedding_type", "null").ok());
  EXPECT_TRUE(ReadWith("attention_probs_dropout_prob", "0.1").ok());
  EXPECT_TRUE(ReadWith("auto_map", "{\"AutoModelForMaskedLM\": \"code\"}").ok());
}

TEST_F(ConfigTest, NotAConfig) {
  EXPECT_TRUE(absl::IsNotFound(ReadConfig(directory_ / "config.json").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadConfig(directory_.path()).status()));
  for (const char* text : {"", "[]", "7", "{", "null"}) {
    WriteFile(directory_ / "config.json", text);
    EXPECT_TRUE(absl::IsInvalidArgument(ReadConfig(directory_ / "config.json").status())) << text;
  }
}

TEST_F(ConfigTest, RealModel) {
  const absl::StatusOr<std::string> directory = RealModelDirectory();
  ASSERT_TRUE(directory.ok()) << directory.status();
  const absl::StatusOr<EncoderConfig> config = ReadConfig(*directory + "/config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->layers, 6);
  EXPECT_EQ(config->heads, 12);
  EXPECT_EQ(config->hidden, 384);
  EXPECT_EQ(config->vocab, 30522);
}

}  // namespace
}  // namespace attendant
