// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr char kModules[] = R"([
  {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";
constexpr char kPooling[] = "1_Pooling/config.json";

using Files = std::map<std::string, std::string>;

absl::StatusOr<SentenceSettings> Read(const Files& files) {
  TempDirectory directory;
  std::filesystem::create_directory(directory / "1_Pooling");
  for (const auto& [name, text] : files) WriteFile(directory / name, text);
  return ReadSentenceSettings(directory.path(), 384, 512);
}

TEST(SentenceSettingsTest, DefaultsWithoutFiles) {
  const auto settings = Read({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->pooling, Pooling::kMean);
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
  EXPECT_EQ(settings->pooling, Pooling::kCls);
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
  EXPECT_EQ(settings->pooling, Pooling::kMean);
  EXPECT_FALSE(settings->normalize);
}

TEST(SentenceSettingsTest, ReadsEveryPooling) {
  const std::pair<const char*, Pooling> cases[] = {
      {R"({"pooling_mode": "mean"})", Pooling::kMean},
      {R"({"pooling_mode": "cls"})", Pooling::kCls},
      {R"({"pooling_mode": "max"})", Pooling::kMax},
      {R"({"pooling_mode": "lasttoken"})", Pooling::kLast},
      {R"({"pooling_mode_max_tokens": true})", Pooling::kMax},
      {R"({"pooling_mode_lasttoken": true})", Pooling::kLast},
      {R"({"pooling_mode": "cls", "pooling_mode_cls_token": true})", Pooling::kCls},
  };
  for (const auto& [text, pooling] : cases) {
    const auto settings = Read({{kPooling, text}});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->pooling, pooling) << text;
  }
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

TEST(SentenceSettingsTest, SaysWhatIsWrong) {
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;
  const std::tuple<Files, absl::StatusCode, const char*> cases[] = {
      {{{"modules.json", "{"}}, kInvalid, "modules.json"},
      {{{"modules.json", "{}"}}, kInvalid, "modules.json"},
      {{{"modules.json", "[]"}}, kInvalid, "no Pooling step"},
      {{{"modules.json", R"([{"path": ""}])"}}, kInvalid, "type"},
      {{{"modules.json", R"([{"type": "a.Transformer"}, {"type": "a.Dense"}])"}},
       kUnsupported,
       "step 1 is Dense"},
      {{{"modules.json", R"([{"type": "a.Transformer"}, {"type": "a.Pooling", "path": "../x"}])"}},
       kInvalid,
       "leaves the checkpoint's folder"},
      {{{"modules.json", kModules}}, absl::StatusCode::kNotFound, "1_Pooling/config.json"},
      {{{kPooling, R"({"word_embedding_dimension": 768, "pooling_mode": "cls"})"}},
       kInvalid,
       "word_embedding_dimension is 768, the encoder's hidden_size is 384"},
      {{{kPooling, R"({"pooling_mode": "cls", "pooling_mode_mean_tokens": true})"}},
       kInvalid,
       "contradict"},
      {{{kPooling, R"({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true})"}},
       kUnsupported,
       "both"},
      {{{kPooling, R"({"pooling_mode": "weightedmean"})"}}, kUnsupported, "weightedmean"},
      {{{kPooling, R"({"pooling_mode": "best"})"}}, kUnsupported, "'best'"},
      {{{kPooling, R"({"pooling_mode": 3})"}}, kInvalid, "pooling_mode"},
      {{{kPooling, "{}"}}, kInvalid, "no pooling is chosen"},
      {{{"sentence_bert_config.json", R"({"max_seq_length": 0})"}}, kInvalid, "max_seq_length"},
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
