// SPDX-License-Identifier: Apache-2.0
// BERT's relatives: their config.json, and how their tensors are found. tests/kernels/backends
// compares what they compute with transformers (the tiny checkpoints of tests/golden/encoder).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/io/safetensors.h"
#include "tests/kernels/checkpoints/families/family_support.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(RobertaTest, PositionsBeginBehindThePaddingToken) {
  for (const char* type : {"roberta", "camembert", "xlm-roberta"}) {
    const auto config = Read(Bert(type, ", \"type_vocab_size\": 1"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->first_position, 2) << "1 is the default of pad_token_id";
    EXPECT_EQ(config->encoder.max_positions, 40);
    EXPECT_EQ(config->encoder.segment_types, 1);
  }
  const auto config = Read(Bert("roberta", ", \"pad_token_id\": 0"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->first_position, 1);
  EXPECT_EQ(config->encoder.max_positions, 41);
}

TEST(RobertaTest, APaddingTokenBehindThePositionsIsRefused) {
  EXPECT_TRUE(Read(Bert("roberta", ", \"pad_token_id\": 40")).ok());
  for (const char* id : {"-1", "41", "9223372036854775807", "\"1\"", "1.5"}) {
    const absl::Status status =
        Read(Bert("roberta", absl::StrCat(", \"pad_token_id\": ", id))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << id;
    EXPECT_THAT(std::string(status.message()), HasSubstr("pad_token_id")) << id;
  }
}

TEST(ElectraTest, EmbeddingsOfAnotherWidthAreProjected) {
  for (const auto& [more, width] : {std::pair{"", 128},
                                    {", \"embedding_size\": 128", 128},
                                    {", \"embedding_size\": 32", 32},
                                    {", \"embedding_size\": 48", 0}}) {
    const auto config = Read(Bert("electra", more));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->encoder.embedding_width, width) << more;
  }
  for (const char* width : {"0", "-1", "1048577"}) {
    const absl::Status status =
        Read(Bert("electra", absl::StrCat(", \"embedding_size\": ", width))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("embedding_size is ", width)));
  }
  ExpectUnimplemented(Bert("bert", ", \"embedding_size\": 32"), "`embedding_size` is 32");
}

TEST(FamilyTest, ACausalEncoderIsRefused) {
  for (const char* type : {"bert", "roberta", "electra", "modernbert", "mpnet", "nomic_bert", "gte",
                           "esm", "jina_embeddings_v3"}) {
    ExpectUnimplemented(Bert(type, ", \"is_causal\": true"), "`is_causal` is true");
    EXPECT_THAT(std::string(Read(Bert(type, ", \"is_causal\": false")).status().message()),
                testing::Not(HasSubstr("is_causal")));
  }
}

TEST(FamilyTest, AnUnknownOneIsRefusedWithAllThatAreKnown) {
  const absl::Status status = Read(Bert("gpt2")).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("supported is albert, bert, bidirectional_pplx_qwen3, camembert, deberta-v2, "
                "distilbert, electra, esm, eurobert, "
                "gemma3_text, gte, jina_embeddings_v3, llama, llama_bidirec, mistral, "
                "modernbert, mpnet, new, "
                "nomic_bert, qwen2, qwen3, roberta, t5, xlm-roberta"));
}

TEST(MpnetTest, AddsABiasByDistance) {
  const auto config = Read(Bert("mpnet", ", \"relative_attention_num_buckets\": 32"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->first_position, 2);
  EXPECT_EQ(config->encoder.max_positions, 40);
  EXPECT_EQ(config->encoder.segment_types, 1);
  EXPECT_EQ(config->encoder.score_bias, ScoreBias::kBuckets);
  EXPECT_EQ(config->encoder.bias_buckets, 32);
  const absl::Status other =
      Read(Bert("mpnet", ", \"relative_attention_num_buckets\": 64")).status();
  EXPECT_TRUE(absl::IsUnimplemented(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("`relative_attention_num_buckets` is 64"));
  const absl::Status few = Read(absl::StrReplaceAll(Bert("mpnet"), {{": 42", ": 2"}})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(few)) << few;
  EXPECT_THAT(std::string(few.message()), HasSubstr("`max_position_embeddings` is 2"));
}

// With the fields that all versions of transformers write.
std::string ModernBert(const std::string& more) {
  return Bert("modernbert", absl::StrCat(", \"hidden_activation\": \"gelu\"", more));
}

TEST(ModernBertTest, OldAndNewFieldsSayTheSame) {
  const auto old = Read(ModernBert(
      R"(, "global_attn_every_n_layers": 2, "local_attention": 10, "position_embedding_type":
      "absolute", "global_rope_theta": 80000.0, "local_rope_theta": 5000.0)"));
  ASSERT_TRUE(old.ok()) << old.status();
  const EncoderConfig& encoder = old->encoder;
  EXPECT_EQ(encoder.norm_place, NormPlace::kPre);
  EXPECT_TRUE(encoder.final_norm && encoder.gated_ffn && !encoder.first_attention_norm);
  EXPECT_EQ(encoder.layer_norm_epsilon, 1e-5f);
  EXPECT_EQ(encoder.window, 5);
  EXPECT_EQ(encoder.local_layers.to_ullong(), 0b010u);
  EXPECT_EQ(encoder.positions, Positions::kRotary);
  EXPECT_EQ(encoder.rotary.base, 80000);
  EXPECT_EQ(encoder.local_rotary.base, 5000);
  EXPECT_FALSE(old->biases.qkv || old->biases.ffn_down || old->biases.norms);
  const auto now = Read(ModernBert(
      R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention"],
      "local_attention": 10, "rope_parameters": {
      "full_attention": {"rope_theta": 80000.0, "rope_type": "default"},
      "sliding_attention": {"rope_theta": 5000.0, "rope_type": "default"}})"));
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_TRUE(now->encoder == encoder);
}

// A property of transformers' config that sets `local_attention`.
TEST(ModernBertTest, SlidingWindowIsTheWindow) {
  for (const char* more : {R"(, "sliding_window": 7)", R"(, "sliding_window": 7,
      "local_attention": 10)"}) {
    const auto config = Read(ModernBert(more));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->encoder.window, 7);
  }
}

// transformers rounds half of `local_attention` down.
TEST(ModernBertTest, TheSmallestWindowIsTheTokenItself) {
  for (const char* more :
       {R"(, "local_attention": 1)", R"(, "local_attention": 0)", R"(, "sliding_window": 0)"}) {
    const auto config = Read(ModernBert(more));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->encoder.window, 0);
    EXPECT_EQ(config->encoder.local_layers.to_ullong(), 0b110u);
  }
}

TEST(ModernBertTest, HasTransformersDefaults) {
  const auto config = Read(ModernBert(", \"norm_bias\": true, \"mlp_bias\": true"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.window, 64);
  EXPECT_EQ(config->encoder.local_layers.to_ullong(), 0b110u);
  EXPECT_EQ(config->encoder.rotary.base, 160000);
  EXPECT_EQ(config->encoder.local_rotary.base, 10000);
  EXPECT_TRUE(config->biases.norms && config->biases.ffn_up && !config->biases.qkv);
}

TEST(ModernBertTest, RefusesByName) {
  const std::pair<const char*, const char*> unsupported[] = {
      {R"(, "rope_scaling": {"type": "linear", "factor": 2})", "`rope_scaling` is there"},
      {R"(, "local_rope_theta": null)", "`local_rope_theta` is null"},
      {R"(, "rope_parameters": {"full_attention": {"rope_type": "yarn"}})",
       "`rope_parameters`.`full_attention`: `rope_type` is `yarn`"},
      {R"(, "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.5}})",
       "`partial_rotary_factor` is 0.5"},
      {R"(, "rope_parameters": {"rope_theta": 10000.0})", "`rope_parameters` is of `rope_theta`"},
      {R"(, "layer_types": ["full_attention", "chunked_attention", "full_attention"])",
       "`layer_types` is `chunked_attention`"}};
  for (const auto& [more, message] : unsupported) {
    const absl::Status status = Read(ModernBert(more)).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  const std::pair<const char*, const char*> invalid[] = {
      {R"(, "layer_types": ["full_attention"])", "has 1 values, `num_hidden_layers` is 3"},
      {R"(, "layer_types": 3)", "layer_types"},
      {R"(, "global_attn_every_n_layers": 0)", "`global_attn_every_n_layers` is 0"},
      {R"(, "local_attention": -1)", "`local_attention` is -1"},
      {R"(, "sliding_window": -1)", "`sliding_window` is -1"},
      {R"(, "local_rope_theta": 0)", "local_rotary has base 0"},
      {R"(, "rope_parameters": [])", "rope_parameters"},
      {R"(, "norm_eps": 2)", "`norm_eps` is 2"}};
  for (const auto& [more, message] : invalid) {
    const absl::Status status = Read(ModernBert(more)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(ModernBertTest, StoredBiasesAreThoseOfTheConfig) {
  const std::string golden = GoldenDirectory("tiny_modernbert");
  TempDirectory directory;
  std::filesystem::copy(golden + "/model.safetensors", directory / "model.safetensors");
  const std::string config = *ReadTextFile(golden + "/config.json", 1 << 20);
  WriteFile(directory / "config.json",
            absl::StrReplaceAll(config, {{"\"norm_bias\": false", "\"norm_bias\": true"}}));
  EXPECT_THAT(LoadCheckpoint(directory.path()).status().ToString(),
              HasSubstr("tensor `model.embeddings.norm.bias` is missing"));
  const auto file = SafetensorsFile::Open(golden + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<TestTensor> tensors;
  for (const StoredTensor& tensor : file->tensors()) {
    tensors.push_back({tensor.name,
                       tensor.dtype,
                       tensor.dims,
                       {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()}});
  }
  tensors.push_back(FloatTensor("model.layers.3.attn.Wo.bias", {1}, {1}));
  WriteFile(directory / "model.safetensors", SafetensorsBytes(tensors));
  WriteFile(directory / "config.json", config);
  EXPECT_THAT(LoadCheckpoint(directory.path()).status().ToString(),
              HasSubstr("tensor `model.layers.3.attn.Wo.bias` is there"));
}

// As its own code has it; `more` may begin with the fields of its positions.
std::string New(const std::string& more) {
  return Bert("new", absl::StrCat(R"(, "auto_map": {"AutoModel":
      "Alibaba-NLP/new-impl--modeling.NewModel"}, "position_embedding_type": "rope")",
                                  more));
}

TEST(GteTest, ReadsTheScalingOfItsCode) {
  const auto plain = Read(New(", \"rope_theta\": 500"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->encoder.rotary, (Rotary{.base = 500}));
  EXPECT_EQ(plain->encoder.segment_types, 1);
  EXPECT_TRUE(plain->segments && plain->biases.qkv && plain->biases.ffn_down);
  EXPECT_FALSE(plain->biases.ffn_up);
  const auto scaled = Read(New(R"(, "rope_theta": 500, "rope_scaling": {"type": "ntk",
      "factor": 8.0}, "type_vocab_size": 0)"));
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->encoder.rotary.base, 4000);
  EXPECT_NEAR(scaled->encoder.rotary.frequency_scale, std::pow(8, -1.0 / 6), 1e-12);
  EXPECT_EQ(scaled->encoder.segment_types, 1);
  EXPECT_FALSE(scaled->segments);
  const auto now = Read(Bert("gte", R"(, "type_vocab_size": 1, "rope_parameters": {"rope_theta":
      500, "rope_type": "default"})"));
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_TRUE(now->encoder == plain->encoder);
}

TEST(GteTest, RefusesByName) {
  for (const char* field : {"logn_attention_scale", "logn_attention_clip1"}) {
    ExpectUnimplemented(New(absl::StrCat(", \"", field, "\": true")), field);
  }
  ExpectUnimplemented(New(", \"pack_qkv\": false"), "`pack_qkv` is false");
  ExpectUnimplemented(New(", \"layer_norm_type\": \"rms_norm\""), "`layer_norm_type`");
  ExpectUnimplemented(New(R"(, "rope_scaling": {"type": "linear", "factor": 2})"),
                      "`type` is `linear`");
  ExpectUnimplemented(New(R"(, "rope_scaling": {"type": "ntk", "factor": 0.5})"),
                      "`factor` is 0.5");
  ExpectUnimplemented(New(R"(, "rope_scaling": {"type": "ntk", "factor": 2, "mixed_b": 0.6})"),
                      "`mixed_b` is there");
  ExpectUnimplemented(Bert("new", R"(, "position_embedding_type": "absolute")"),
                      "`position_embedding_type` is `absolute`");
  EXPECT_TRUE(
      absl::IsInvalidArgument(Read(New(", \"rope_scaling\": {\"type\": \"ntk\"}")).status()));
}

TEST(JinaV3Test, HasRotaryPositions) {
  const auto config = Read(Bert("jina_embeddings_v3"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.positions, Positions::kRotary);
  EXPECT_EQ(config->encoder.rotary.base, 20000);
  EXPECT_EQ(config->encoder.segment_types, 1);
  EXPECT_EQ(config->encoder.layer_norm_epsilon, 1e-5f);
}

std::string JinaFlash(const std::string& more, const std::string& code) {
  return Bert("xlm-roberta", absl::StrCat(", \"auto_map\": {\"AutoModel\": \"", code, "\"}", more));
}

TEST(JinaV3Test, IsFoundByItsCode) {
  for (const char* code : {"jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA",
                           "modeling_xlm_roberta.XLMRobertaModel"}) {
    const auto config = Read(
        JinaFlash(", \"position_embedding_type\": \"rotary\", \"rotary_emb_base\": 20000.0", code));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->encoder == Read(Bert("jina_embeddings_v3"))->encoder);
    EXPECT_EQ(Read(JinaFlash("", code))->encoder.rotary.base, 10000);
  }
  ExpectUnimplemented(
      JinaFlash(", \"position_embedding_type\": \"absolute\"", "modeling_lora.XLMRobertaLoRA"),
      "`position_embedding_type` is `absolute`");
}

class TinyFamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(TinyFamilyTest, LoadsAndNamesATensorThatIsMissing) {
  const std::string golden = GoldenDirectory(GetParam());
  const auto checkpoint = LoadCheckpoint(golden);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(ValidateWeights(checkpoint->config, checkpoint->weights).ok());
  EXPECT_EQ(checkpoint->config.max_positions, 40);
  // With one layer more than there is.
  TempDirectory directory;
  std::filesystem::copy(golden + "/model.safetensors", directory / "model.safetensors");
  const std::string config = *ReadTextFile(golden + "/config.json", 1 << 20);
  WriteFile(directory / "config.json",
            absl::StrReplaceAll(config, {{"n_layer\": 2", "n_layer\": 3"},
                                         {"_layers\": 1", "_layers\": 2"},
                                         {"_layers\": 2", "_layers\": 3"},
                                         {"_layers\": 3", "_layers\": 4"},
                                         {"_layers\": 4", "_layers\": 5"},
                                         {"_types\": [", "_types\": [\"full_attention\","}}));
  const absl::Status status = LoadCheckpoint(directory.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(".", checkpoint->config.layers, ".")));
}

INSTANTIATE_TEST_SUITE_P(Families, TinyFamilyTest,
                         testing::Values("tiny_roberta", "tiny_distilbert", "tiny_electra",
                                         "tiny_mpnet", "tiny_modernbert", "tiny_nomic_bert",
                                         "tiny_gte", "tiny_jina_bert", "tiny_jina_v3", "tiny_qwen3",
                                         "tiny_deberta_v2", "tiny_gemma3", "tiny_t5",
                                         "tiny_t5_gated", "tiny_eurobert", "tiny_qwen2",
                                         "tiny_llama", "tiny_mistral", "tiny_electra_small",
                                         "tiny_nomic_moe", "tiny_jina_qk", "tiny_neobert"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace attendant
