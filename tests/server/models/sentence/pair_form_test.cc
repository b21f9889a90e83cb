// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/pair_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/models/sentence/prompts.h"
#include "server/models/sentence/read_pair_forms.h"
#include "server/models/sentence/transformer_file.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kGolden[] = "tests/golden/chat/";
constexpr int64_t kLimit = 84;  // of the golden folders

// A golden folder as it is, or a copy of one with another file or several.
class Folder {
 public:
  explicit Folder(const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& files = {}) {
    std::filesystem::copy(kGolden + name, copy_.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    for (const auto& [file, text] : files) {
      if (text.empty()) {
        std::filesystem::remove(copy_ / file);
      } else {
        WriteFile(copy_ / file, text);
      }
    }
    auto loaded = LoadTokenizer(copy_.path());
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    tokenizer_ = *std::move(loaded);
  }

  absl::Status Read() {
    const ModelFolder folder{.root = copy_.path(), .encoder = copy_.path()};
    auto prompts = ReadPrompts(copy_.path());
    if (!prompts.ok()) return prompts.status();
    prompts_ = *std::move(prompts);
    const absl::Status checked = CheckTransformerFile(folder, kLimit);
    return checked.ok() ? AddPairForms(folder, *tokenizer_, prompts_) : checked;
  }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Prompts& prompts() const { return prompts_; }

 private:
  TempDirectory copy_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Prompts prompts_;
};

TEST(PairFormTest, HasTheTokensOfSentenceTransformers) {
  for (const std::string name : {"qwen3_words", "qwen2_word", "qwen3_classifier"}) {
    Folder folder(name);
    ASSERT_TRUE(folder.Read().ok()) << folder.Read();
    std::ifstream file(kGolden + name + "/expected.json");
    const auto cases = nlohmann::json::parse(file);
    int cut = 0;
    for (const nlohmann::json& one : cases) {
      const auto prompt = folder.prompts().Find(one["prompt"].get<std::string>());
      ASSERT_TRUE(prompt.ok()) << prompt.status();
      const auto tokens = TokenizePair(*folder.prompts().FindPairForm(*prompt), folder.tokenizer(),
                                       one["texts"][0].get<std::string>(),
                                       one["texts"][1].get<std::string>(), {.max_tokens = kLimit});
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(tokens->token_ids, one["ids"].get<std::vector<int32_t>>()) << name << one;
      if (tokens->truncated()) ++cut;
    }
    EXPECT_GT(cut, 1) << name;
  }
}

TEST(PairFormTest, ADocumentIsCutToTokensFirst) {
  Folder folder("qwen2_word");
  ASSERT_TRUE(folder.Read().ok());
  const PairForm& form = *folder.prompts().pair_form;
  const auto tokenize = [&](absl::string_view document, TokenizerOptions options) {
    const auto tokens = TokenizePair(form, folder.tokenizer(), "q", document, options);
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return tokens->token_ids;
  };
  const TokenizerOptions whole{.max_tokens = 200};
  const TokenizerOptions first{.max_tokens = 200, .max_second_tokens = 3};
  const TokenizerOptions last{
      .max_tokens = 200, .side = TruncationSide::kLeft, .max_second_tokens = 3};
  EXPECT_EQ(tokenize("zzzzz", first), tokenize("zzz", whole));
  EXPECT_EQ(tokenize("zzz", first), tokenize("zzz", whole));
  EXPECT_EQ(tokenize("xxzzz", last), tokenize("zzz", whole));
  // Each of these characters is several tokens: a part of one is left out.
  const std::string cut = "z\u4e2d\u4e2d";
  for (int64_t tokens = 1; tokens < 8; ++tokens) {
    for (const TruncationSide side : {TruncationSide::kLeft, TruncationSide::kRight}) {
      const TokenizerOptions options{.max_tokens = 200, .side = side, .max_second_tokens = tokens};
      EXPECT_LE(tokenize(cut, options).size(), tokenize(cut, whole).size());
    }
  }
}

// Offsets have a limit, 2 MiB: its end falls into a character here, on both sides.
TEST(PairFormTest, ALongDocumentIsCutToo) {
  Folder folder("qwen2_word");
  ASSERT_TRUE(folder.Read().ok());
  std::string document;
  while (document.size() < (size_t{5} << 19)) document += "z\u4e2d ";
  const absl::string_view whole = document;
  for (const TruncationSide side : {TruncationSide::kLeft, TruncationSide::kRight}) {
    const auto tokenize = [&](absl::string_view text, int64_t most) {
      return TokenizePair(*folder.prompts().pair_form, folder.tokenizer(), "q", text,
                          {.max_tokens = 200, .side = side, .max_second_tokens = most});
    };
    const bool left = side == TruncationSide::kLeft;
    const auto cut = tokenize(whole, 20);
    ASSERT_TRUE(cut.ok()) << cut.status();
    const auto end = tokenize(left ? whole.substr(whole.size() - 500) : whole.substr(0, 500), 20);
    EXPECT_EQ(cut->token_ids, end->token_ids);
    EXPECT_TRUE(absl::IsInvalidArgument(tokenize(whole, 100'000'000).status()));
  }
}

TEST(PairFormTest, RefusesTextsAsATokenizerDoes) {
  Folder folder("qwen2_word");
  ASSERT_TRUE(folder.Read().ok());
  const PairForm& form = *folder.prompts().pair_form;
  const auto error = [&](absl::string_view query, absl::string_view document, bool truncate) {
    const auto tokens = TokenizePair(form, folder.tokenizer(), query, document,
                                     {.max_tokens = 30, .truncate = truncate});
    EXPECT_TRUE(absl::IsInvalidArgument(tokens.status())) << tokens.status();
    return std::string(tokens.status().message());
  };
  EXPECT_EQ(error("ab\xFF", "c", true), "invalid UTF-8 at byte 2");
  EXPECT_EQ(error("ab", "\xFF", true), "invalid UTF-8 at byte 0 of the second text");
  EXPECT_THAT(error("z", std::string(50, 'z'), false), HasSubstr("the limit is 30"));
  EXPECT_EQ(form.fixed_bytes(), 40);
}

TEST(PairFormTest, TheTemplateMayStandInTheTokenizersConfig) {
  const std::string wanted = R"({{ messages[0].content }}:{{ messages[1].content }}")";
  const nlohmann::json config = {
      {"tokenizer_class", "Qwen2Tokenizer"},
      {"chat_template",
       {{{"name", "rag"}, {"template", "no"}}, {{"name", "default"}, {"template", wanted}}}}};
  for (const nlohmann::json& chat : {config["chat_template"], nlohmann::json(wanted)}) {
    nlohmann::json changed = config;
    changed["chat_template"] = chat;
    Folder folder("qwen2_word",
                  {{"chat_template.jinja", ""}, {"tokenizer_config.json", changed.dump()}});
    ASSERT_TRUE(folder.Read().ok()) << folder.Read();
    EXPECT_EQ(folder.prompts().pair_form->fixed_bytes(), 2);
  }
  Folder none("qwen2_word", {{"chat_template.jinja", ""}, {"tokenizer_config.json", "{}"}});
  EXPECT_THAT(std::string(none.Read().message()), HasSubstr("`chat_template` is not there, nor"));
  Folder unnamed("qwen2_word", {{"chat_template.jinja", ""},
                                {"tokenizer_config.json", R"({"chat_template": []})"}});
  EXPECT_THAT(std::string(unnamed.Read().message()), HasSubstr("has none named `default`"));
}

TEST(PairFormTest, SettingsAreVariablesOfTheTemplate) {
  const std::string both = "{{ messages[0].content }}{{ messages[1].content }}";
  Folder folder(
      "qwen2_word",
      {{"chat_template.jinja",
        both + "{{ a }}{{ b }}{{ n }}{{ none_ is none }}{{ eos_token }}{{ tools is none }}"
               "{{ add_generation_prompt }}"},
       {"sentence_bert_config.json",
        R"({"modality_config": {"message": {"format": "flat"}},
                      "processing_kwargs": {"chat_template": {
                        "a": "x", "b": true, "n": 7, "none_": null, "eos_token": "E"}}})"}});
  ASSERT_TRUE(folder.Read().ok()) << folder.Read();
  EXPECT_EQ(folder.prompts().pair_form->text.back().fixed, "xTrue7TrueETrueFalse");
}

TEST(PairFormTest, SpecialTokensAreThoseOfTransformers) {
  const auto read = [](const std::string& config, const std::string& map, const std::string& tail) {
    Folder folder("qwen2_word",
                  {{"chat_template.jinja",
                    absl::StrCat("{{ messages[0].content }}{{ messages[1].content }}.", tail)},
                   {"tokenizer_config.json", config},
                   {"special_tokens_map.json", map}});
    const absl::Status status = folder.Read();
    return status.ok() ? folder.prompts().pair_form->text.back().fixed : status.ToString();
  };
  const std::string map = R"({"eos_token": {"content": "M"}, "pad_token": null})";
  const std::string tail = "{{ eos_token }}{{ pad_token }}";
  EXPECT_EQ(read(R"({"eos_token": "E", "pad_token": "P"})", "{}", tail), ".EP");
  EXPECT_EQ(read(R"({"eos_token": "E", "pad_token": "P"})", map, tail), ".M");
  EXPECT_EQ(read("{}", map, tail), ".M");
  EXPECT_EQ(read(R"({"eos_token": null, "pad_token": null})", "{}", tail), ".");
  EXPECT_EQ(read(R"({"eos_token": "E", "pad_token": "P", "added_tokens_decoder": {}})", map, tail),
            ".EP");
  EXPECT_THAT(read(R"({"eos_token": "E"})", "{}", tail), HasSubstr("UNIMPLEMENTED: "));
  EXPECT_THAT(read("{}", "{}", tail),
              HasSubstr("chat_template.jinja: the template has `eos_token`, which is not in "));
  EXPECT_EQ(read("{}", "{}", ""), ".");
}

TEST(PairFormTest, RefusesFoldersThatItWouldServeWrongly) {
  const auto settings = [](const std::string& arguments) {
    return absl::StrCat(R"({"modality_config": {"message": {"format": "flat"}},
                            "processing_kwargs": {"chat_template": )",
                        arguments, "}}");
  };
  const std::string file = "sentence_bert_config.json", chat = "chat_template.jinja";
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {file, settings(R"({"max_length": 5})"), "`max_length` is there, supported is none"},
      {file, settings(R"({"chat_template": "rag"})"), "`chat_template` is there"},
      {file, settings(R"({"x": [1]})"), "`x` is there, supported is a text, an integer"},
      {file, R"({"modality_config": {"message": {"format": "structured"}}})",
       "`format` is `structured`, supported is `flat`"},
      {file, R"({"modality_config": {"message": {}}})", "`format` is `auto`"},
      {file, "{}", "`modality_config` is not there, and the folder has a LogitScore"},
      {chat, "{{ messages[0].content }}", "gives out the document 0 times, not once"},
      {chat, "{% for m in messages %}{{ m.content ~ m.content }}{% endfor %}",
       "chat_template.jinja: the template gives out the query 2 times"},
      {chat, "{% macro a() %}", "chat_template.jinja: line 1: tag `macro` is not supported"},
      {chat,
       "{% if messages | length == 3 %}{{ raise_exception('no prompts') }}{% endif %}"
       "{{ messages[0].content }}{{ messages[1].content }}",
       "with the prompt 'facts': line 1: the template refuses the messages: `no prompts`"}};
  for (const auto& [name, text, message] : cases) {
    Folder folder("qwen3_words", {{name, text}});
    const absl::Status status = folder.Read();
    EXPECT_FALSE(status.ok()) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  std::string prompts;
  for (int i = 0; i < 257; ++i) absl::StrAppend(&prompts, i > 0 ? "," : "", "\"", i, "\": \"a\"");
  Folder many("qwen3_words", {{"config_sentence_transformers.json",
                               absl::StrCat(R"({"prompts": {)", prompts, "}}")}});
  EXPECT_THAT(std::string(many.Read().message()), HasSubstr("there are 257 prompts for it"));
}

}  // namespace
}  // namespace attendant
