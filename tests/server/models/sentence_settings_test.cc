// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/models/sentence/model_folder.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModules[] = R"([
  {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";
constexpr char kPooling[] = "1_Pooling/config.json";

using Files = std::map<std::string, std::string>;

// A chain with one more step, in the folder 2_Next, whose config.json may be absent.
Files Chain(const std::string& type, const std::string& config = {}) {
  const std::string modules = absl::StrCat(
      R"([{"type": "sentence_transformers.Transformer"},
          {"path": "1_Pooling", "type": "sentence_transformers.Pooling"},
          {"path": "2_Next", "type": ")",
      type, R"("}])");
  Files files = {{"modules.json", modules}, {kPooling, R"({"pooling_mode": "cls"})"}};
  if (!config.empty()) files["2_Next/config.json"] = config;
  return files;
}

absl::StatusOr<SentenceSettings> ReadFolder(const std::string& directory) {
  const absl::StatusOr<ModelFolder> folder = FindModelFolder(directory);
  return folder.ok() ? ReadSentenceSettings(*folder, 384, 512) : folder.status();
}

absl::StatusOr<SentenceSettings> Read(const Files& files) {
  TempDirectory directory;
  for (const char* folder : {"1_Pooling", "2_Next"}) {
    std::filesystem::create_directory(directory / folder);
  }
  for (const auto& [name, text] : files) WriteFile(directory / name, text);
  return ReadFolder(directory.path());
}

TEST(SentenceSettingsTest, DefaultsWithoutFiles) {
  const auto settings = Read({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->poolings, ElementsAre(Pooling::kMean));
  EXPECT_FALSE(settings->normalize);
  EXPECT_EQ(settings->max_text_tokens, 512);
}

TEST(SentenceSettingsTest, ReadsTheChain) {
  const auto settings = Read({{"modules.json", kModules},
                              {kPooling, R"({"word_embedding_dimension": 384,
                                  "pooling_mode_cls_token": true,
                                  "pooling_mode_mean_tokens": false})"},
                              {"sentence_bert_config.json", R"({"max_seq_length": 256})"},
                              {"tokenizer_config.json", R"({"model_max_length": 128})"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->poolings, ElementsAre(Pooling::kCls));
  EXPECT_TRUE(settings->normalize);
  EXPECT_EQ(settings->max_text_tokens, 256);
}

TEST(SentenceSettingsTest, DoesNotNormalizeWithoutThatStep) {
  const auto settings =
      Read({{"modules.json",
             R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                 {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])"},
            {kPooling, R"({"word_embedding_dimension": 384, "pooling_mode_mean_tokens": true})"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->poolings, ElementsAre(Pooling::kMean));
  EXPECT_FALSE(settings->normalize);
}

TEST(SentenceSettingsTest, ReadsEveryPooling) {
  const std::pair<const char*, std::vector<Pooling>> cases[] = {
      {R"({"pooling_mode": "mean"})", {Pooling::kMean}},
      {R"({"pooling_mode": "cls"})", {Pooling::kCls}},
      {R"({"pooling_mode": "max"})", {Pooling::kMax}},
      {R"({"pooling_mode": "lasttoken"})", {Pooling::kLast}},
      {R"({"pooling_mode": "mean_sqrt_len_tokens"})", {Pooling::kMeanSqrtLen}},
      {R"({"pooling_mode": "weightedmean"})", {Pooling::kWeightedMean}},
      {R"({"pooling_mode": ["max", "cls"]})", {Pooling::kMax, Pooling::kCls}},
      {R"({"word_embedding_dimension": 384})", {Pooling::kMean}},
      {R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": false})", {Pooling::kMean}},
      {R"({"pooling_mode_max_tokens": true})", {Pooling::kMax}},
      {R"({"pooling_mode_lasttoken": true})", {Pooling::kLast}},
      {R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})",
       {Pooling::kCls, Pooling::kMean}},
      {R"({"pooling_mode": "cls", "pooling_mode_cls_token": true})", {Pooling::kCls}},
  };
  for (const auto& [text, poolings] : cases) {
    const auto settings = Read({{kPooling, text}});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->poolings, poolings) << text;
    EXPECT_EQ(settings->embedding_dims(384), 384 * static_cast<int64_t>(poolings.size()));
  }
}

TEST(SentenceSettingsTest, ReadsModulesBehindThePooling) {
  const std::string weights =
      SafetensorsBytes({FloatTensor("linear.weight", {2, 384}, std::vector<float>(768, 0.5f)),
                        FloatTensor("linear.bias", {2}, {1, 2})});
  for (const char* type :
       {"sentence_transformers.models.Dense", "sentence_transformers.base.modules.dense.Dense"}) {
    Files files = Chain(type, R"({"in_features": 384, "out_features": 2, "bias": true,
        "activation_function": "torch.nn.modules.linear.Identity"})");
    files["2_Next/model.safetensors"] = weights;
    const auto settings = Read(files);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_FALSE(settings->normalize);
    EXPECT_TRUE(settings->include_prompt);
    EXPECT_EQ(settings->embedding_dims(384), 2);
    EXPECT_THAT(settings->head.Compute(std::vector<float>(384, 1)), ElementsAre(193, 194));
  }
}

TEST(SentenceSettingsTest, ModulesOfOtherCodeAreNamed) {
  const std::pair<const char*, const char*> unknown[] = {
      {R"([{"type": "my_module.Transformer"},
           {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])",
       "step 0 is my_module.Transformer, supported is Transformer of sentence-transformers"},
      {R"([{"type": "sentence_transformers.models.Transformer"},
           {"path": "1_Pooling", "type": "custom_st.Pooling"}])",
       "step 1 is custom_st.Pooling, supported is Pooling of sentence-transformers"},
      {R"([{"type": "custom_st.Transformer"},
           {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
           {"type": "sentence_transformers_more.Normalize"}])",
       "step 2 is sentence_transformers_more.Normalize; behind"}};
  for (const auto& [modules, message] : unknown) {
    const auto settings =
        Read({{"modules.json", modules}, {kPooling, R"({"pooling_mode": "cls"})"}});
    EXPECT_TRUE(absl::IsUnimplemented(settings.status())) << settings.status();
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(message));
  }
}

TEST(SentenceSettingsTest, TheLastNormalizeIsASettingAndOthersAreModules) {
  Files files = Chain("sentence_transformers.Normalize");
  files["modules.json"] = R"([{"type": "sentence_transformers.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.Pooling"},
      {"type": "sentence_transformers.Normalize"},
      {"type": "sentence_transformers.Dropout"},
      {"type": "sentence_transformers.Normalize"}])";
  files[kPooling] = R"({"pooling_mode": "cls", "include_prompt": false})";
  const auto settings = Read(files);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->normalize);
  EXPECT_FALSE(settings->include_prompt);
  EXPECT_EQ(settings->head.modules.size(), 1);
}

// Behind Normalize, which is then a module: the cut vector is not normalized again.
TEST(SentenceSettingsTest, TruncateDimCutsBehindAllModules) {
  Files files = {{"modules.json", kModules},
                 {kPooling, R"({"pooling_mode": "cls"})"},
                 {"config_sentence_transformers.json", R"({"truncate_dim": 3})"}};
  const auto settings = Read(files);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_FALSE(settings->normalize);
  EXPECT_EQ(settings->embedding_dims(384), 3);
  std::vector<float> values(384);
  values[0] = 3;
  values[9] = 4;
  EXPECT_THAT(settings->head.Compute(values), ElementsAre(0.6f, 0, 0));
  for (const char* limit : {"null", "384", "1000"}) {
    files["config_sentence_transformers.json"] = absl::StrCat(R"({"truncate_dim": )", limit, "}");
    const auto whole = Read(files);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_TRUE(whole->normalize && whole->head.empty()) << limit;
  }
}

TEST(SentenceSettingsTest, MaxActiveDimsIsOfSparseVectors) {
  EXPECT_EQ(Read({})->max_active_dims, 0);
  const auto settings = Read({{"config_sentence_transformers.json", R"({"max_active_dims": 4})"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->max_active_dims, 4);
  EXPECT_EQ(settings->embedding_dims(384), 384);
}

TEST(SentenceSettingsTest, TokenizersLimitIsTheFallback) {
  const std::pair<const char*, int64_t> cases[] = {
      {R"({"model_max_length": 128})", 128},
      {R"({"model_max_length": 1000000000000000019884624838656})", 512},
      {R"({"model_max_length": 1e30})", 512},
      {R"({})", 512},
  };
  for (const auto& [text, tokens] : cases) {
    const auto settings = Read({{"sentence_bert_config.json", R"({"max_seq_length": null})"},
                                {"tokenizer_config.json", text}});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->max_text_tokens, tokens) << text;
  }
}

TEST(SentenceSettingsTest, OldVersionsNamedTheFileByFamily) {
  const std::pair<Files, int64_t> cases[] = {
      {{{"sentence_roberta_config.json", R"({"max_seq_length": 9})"}}, 9},
      {{{"sentence_xlnet_config.json", R"({"max_seq_length": 8})"}}, 8},
      {{{"sentence_distilbert_config.json", R"({"max_seq_length": 7})"},
        {"sentence_camembert_config.json", R"({"max_seq_length": 6})"}},
       7},
      {{{"sentence_bert_config.json", "{}"},
        {"sentence_albert_config.json", R"({"max_seq_length": 5})"}},
       5},
      {{{"sentence_bert_config.json", R"({"do_lower_case": false})"},
        {"sentence_xlm-roberta_config.json", R"({"max_seq_length": 4})"}},
       512}};
  for (const auto& [files, tokens] : cases) {
    const auto settings = Read(files);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->max_text_tokens, tokens) << files.begin()->first;
  }
}

TEST(SentenceSettingsTest, TheSideOfTruncationIsTheTokenizersWhereNoneIsNamed) {
  EXPECT_EQ(Read({})->truncation_side, std::nullopt);
  EXPECT_EQ(Read({{"tokenizer_config.json", "{}"}})->truncation_side, std::nullopt);
  for (const auto& [text, side] :
       {std::pair("left", TruncationSide::kLeft), std::pair("right", TruncationSide::kRight)}) {
    const auto settings =
        Read({{"tokenizer_config.json", absl::StrCat(R"({"truncation_side": ")", text, R"("})")}});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->truncation_side, side);
  }
}

TEST(SentenceSettingsTest, FieldsOfTheTransformerThatChangeNothing) {
  for (const char* text :
       {R"({"transformer_task": "feature-extraction", "module_output_name": "token_embeddings",
            "modality_config": {"text": {"method": "forward",
                                         "method_output_name": "last_hidden_state"}}})",
        R"({"transformer_task": "fill-mask",
            "modality_config": {"text": {"method_output_name": "logits"}}})",
        R"({"max_seq_length": 40, "query_length": 40, "document_length": null,
            "query_expansion": null})",
        R"({"config_args": {"trust_remote_code": true}, "tokenizer_args": {"use_fast": true}})",
        R"({"processing_kwargs": {"text": {}, "audio": {"x": 1},
                                  "chat_template": {"add_generation_prompt": true}}})"}) {
    const auto settings = Read({{"sentence_bert_config.json", text}});
    EXPECT_TRUE(settings.ok()) << settings.status();
  }
}

TEST(SentenceSettingsTest, RefusesFieldsOfTheTransformerThatAreNotComputed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"config_args": {"hidden_act": "relu"}})", "`config_args`: `hidden_act` is there"},
      {R"({"config_kwargs": {"layer_norm_eps": 0.1}})", "`layer_norm_eps` is there"},
      {R"({"tokenizer_args": {"model_max_length": 6}})", "`model_max_length` is there"},
      {R"({"processor_kwargs": {"truncation_side": "left"}})", "`truncation_side` is there"},
      {R"({"processing_kwargs": {"text": {"max_length": 6}}})", "`max_length` is there"},
      {R"({"processing_kwargs": {"common": {"truncation": false}}})", "`truncation` is there"},
      {R"({"query_length": 5})", "`query_length` is 5, supported is 512"},
      {R"({"max_seq_length": 9, "document_length": 8})", "`document_length` is 8, supported is 9"},
      {R"({"max_seq_length": 9, "query_length": 10})", "`query_length` is 10, supported is 9"},
      {R"({"query_expansion": {"length": 16}})", "`query_expansion` is there"},
      {R"({"modality_config": {"text": {"method_output_name": "pooler_output"}}})",
       "`method_output_name` is `pooler_output`, supported is `last_hidden_state`"},
      {R"({"modality_config": {"text": {"method": "get_text_features"}}})",
       "`method` is `get_text_features`"},
      {R"({"modality_config": {"text": {"method": "forward"}, "message": {"format": "flat"}}})",
       "`modality_config`: `message` is there, supported is none but for a cross-encoder"}};
  for (const auto& [text, message] : cases) {
    const absl::Status status = Read({{"sentence_bert_config.json", text}}).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("sentence_bert_config.json"));
  }
}

TEST(SentenceSettingsTest, TextsMayBecomeLowerCase) {
  EXPECT_FALSE(Read({})->lowercases);
  EXPECT_FALSE(Read({{"sentence_bert_config.json", "{}"}})->lowercases);
  EXPECT_TRUE(Read({{"sentence_bert_config.json", R"({"do_lower_case": true})"}})->lowercases);
  EXPECT_TRUE(absl::IsInvalidArgument(
      Read({{"sentence_bert_config.json", R"({"do_lower_case": 1})"}}).status()));
}

TEST(SentenceSettingsTest, AChatTemplateIsLeftOut) {
  const std::string with = R"({"chat_template": "{{ messages }}"})";
  const auto leaves = [](const Files& files) {
    const auto settings = Read(files);
    EXPECT_TRUE(settings.ok()) << settings.status();
    return settings.ok() && settings->leaves_template;
  };
  EXPECT_TRUE(leaves({{"tokenizer_config.json", with}}));
  EXPECT_TRUE(leaves({{"tokenizer_config.json", "{}"}, {"chat_template.jinja", "{{ messages }}"}}));
  EXPECT_FALSE(leaves({{"tokenizer_config.json", R"({"chat_template": null})"}}));
  EXPECT_FALSE(leaves({{"tokenizer_config.json", with},
                       {"modules.json", kModules},
                       {kPooling, R"({"pooling_mode": "cls"})"}}));
}

TEST(SentenceSettingsTest, TheEncodersFilesMayLieInAFolder) {
  const TempDirectory directory;
  for (const char* folder : {"0_Transformer", "1_Pooling"}) {
    std::filesystem::create_directory(directory / folder);
  }
  WriteFile(directory / "modules.json",
            R"([{"type": "sentence_transformers.Transformer", "path": "0_Transformer"},
                                            {"type": "sentence_transformers.Pooling", "path": "1_Pooling"}])");
  WriteFile(directory / kPooling, R"({"pooling_mode": "cls"})");
  WriteFile(directory / "0_Transformer/sentence_bert_config.json", R"({"max_seq_length": 99})");
  const auto settings = ReadFolder(directory.path());
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->max_text_tokens, 99);
  EXPECT_THAT(settings->poolings, ElementsAre(Pooling::kCls));
}

TEST(SentenceSettingsTest, SaysWhatIsWrong) {
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;
  const std::tuple<Files, absl::StatusCode, const char*> cases[] = {
      {{{"modules.json", "{"}}, kInvalid, "modules.json"},
      {{{"modules.json", "{}"}}, kInvalid, "modules.json"},
      {{{"modules.json", "[]"}}, kInvalid, "no Pooling step"},
      {{{"modules.json", R"([{"path": ""}])"}}, kInvalid, "type"},
      {{{"modules.json", R"([{"type": "sentence_transformers.Transformer"},
                            {"type": "sentence_transformers.LSTM"}])"}},
       kUnsupported,
       "step 1 is LSTM"},
      {{{"modules.json", R"([{"type": "sentence_transformers.Asym"}])"}},
       kUnsupported,
       "step 0 is Asym"},
      {Chain("sentence_transformers.LSTM"), kUnsupported,
       "step 2 is LSTM; behind Transformer and Pooling"},
      {Chain("sentence_transformers.Dense"), absl::StatusCode::kNotFound, "2_Next/config.json"},
      {Chain("sentence_transformers.Dense", R"({"in_features": 5, "out_features": 4})"), kInvalid,
       "in_features is 5, the step before it gives 384 values"},
      {Chain("sentence_transformers.Dense", R"({"in_features": 384, "out_features": 0})"), kInvalid,
       "out_features is 0"},
      {Chain("sentence_transformers.Dense",
             R"({"in_features": 384, "out_features": 4, "activation_function": "torch.nn.SELU"})"),
       kUnsupported, "torch.nn.SELU"},
      {Chain("sentence_transformers.Dense",
             R"({"in_features": 384, "out_features": 4, "module_input_name": "token_embeddings"})"),
       kUnsupported, "token_embeddings"},
      {Chain("sentence_transformers.Dense", R"({"in_features": 384, "out_features": 4})"),
       absl::StatusCode::kNotFound, "2_Next"},
      {Chain("sentence_transformers.LayerNorm", R"({"dimension": 4})"), kInvalid, "dimension is 4"},
      {Chain("sentence_transformers.Normalize", R"({"module_input_name": "token_embeddings"})"),
       kUnsupported, "token_embeddings"},
      {{{"modules.json", R"([{"type": "sentence_transformers.Transformer"},
                            {"type": "sentence_transformers.Pooling", "path": "../x"}])"}},
       kInvalid,
       "leaves the checkpoint's folder"},
      {{{"modules.json", kModules}}, absl::StatusCode::kNotFound, "1_Pooling/config.json"},
      {{{kPooling, R"({"word_embedding_dimension": 768, "pooling_mode": "cls"})"}},
       kInvalid,
       "word_embedding_dimension is 768, the encoder's hidden_size is 384"},
      {{{kPooling, R"({"pooling_mode": "cls", "pooling_mode_mean_tokens": true})"}},
       kInvalid,
       "contradict"},
      {{{kPooling, R"({"pooling_mode": []})"}}, kInvalid, "has 0 poolings"},
      {{{kPooling, R"({"pooling_mode": ["cls", 1]})"}}, kInvalid, "pooling_mode"},
      {{{kPooling, R"({"pooling_mode": "best"})"}}, kUnsupported, "'best'"},
      {{{kPooling, R"({"pooling_mode": 3})"}}, kInvalid, "pooling_mode"},
      {{{"sentence_bert_config.json", R"({"max_seq_length": 0})"}}, kInvalid, "max_seq_length"},
      {{{"config_sentence_transformers.json", R"({"truncate_dim": 0})"}},
       kInvalid,
       "`truncate_dim` is 0"},
      {{{"config_sentence_transformers.json", R"({"max_active_dims": -1})"}},
       kInvalid,
       "`max_active_dims` is -1"},
      {{{"sentence_bert_config.json", R"({"max_seq_length": "all"})"}}, kInvalid, "max_seq_length"},
  };
  for (const auto& [files, code, message] : cases) {
    const auto settings = Read(files);
    EXPECT_EQ(settings.status().code(), code) << settings.status();
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
