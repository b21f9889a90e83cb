// SPDX-License-Identifier: Apache-2.0
// What counts beside tokenizer.json, as transformers 5.23 has it.
#include "server/text/tokenizer_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/text/tokenizer.h"
#include "tests/support/bert_tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A tokenizer that keeps case, accents and words of ideographs. It has no added tokens, so that
// tests may replace the vocabulary.
json File() {
  json file = BertTokenizerJson({"[UNK]", "[CLS]", "[SEP]", "a", "A", "e", "E", "\u00c9", "\u4e2d",
                                 "\u56fd", "\u4e2d\u56fd", "b"});
  file["added_tokens"].clear();
  file["normalizer"].update(
      {{"handle_chinese_chars", false}, {"strip_accents", false}, {"lowercase", false}});
  return file;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const json& tokenizer_config, const json& config,
                                                const json& file = File(),
                                                bool lowercases = false) {
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", file.dump());
  if (!tokenizer_config.is_null()) {
    WriteFile(directory / "tokenizer_config.json", tokenizer_config.dump());
  }
  if (!config.is_null()) WriteFile(directory / "config.json", config.dump());
  return LoadTokenizer(directory.path(), lowercases);
}

TokenizedText Pair(const absl::StatusOr<std::unique_ptr<Tokenizer>>& tokenizer) {
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokenizer.ok()) return {};
  const auto tokens = (*tokenizer)->TokenizePair("A \u00c9 \u4e2d\u56fd", "b", {.max_tokens = 100});
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return tokens.ok() ? *tokens : TokenizedText();
}

std::vector<int32_t> Ids(const absl::StatusOr<std::unique_ptr<Tokenizer>>& tokenizer,
                         const std::string& text) {
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokenizer.ok()) return {};
  const auto tokens = (*tokenizer)->Tokenize(text, {.max_tokens = 100});
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return tokens.ok() ? tokens->token_ids : std::vector<int32_t>();
}

json Class(const std::string& name) { return {{"tokenizer_class", name}}; }

const std::vector<int32_t> kOwn = {1, 4, 7, 10, 2, 11, 2};         // as tokenizer.json says
const std::vector<int32_t> kLower = {1, 3, 5, 8, 9, 2, 11, 2};     // as BertTokenizer does
const std::vector<int32_t> kCased = {1, 4, 7, 8, 9, 2, 11, 2};     // without do_lower_case
const std::vector<int32_t> kBare = {1, 4, 6, 10, 2, 11, 2};        // and without accents
const std::vector<int32_t> kMpnet = {1, 3, 5, 8, 9, 2, 2, 11, 2};  // as MPNetTokenizer does

TEST(TokenizerConfigTest, ATokenizerOfBertMakesItsNormalizerAnew) {
  json all = Class("BertTokenizerFast");
  all.update(
      {{"do_lower_case", false}, {"strip_accents", true}, {"tokenize_chinese_chars", false}});
  json mpnet = Class("MPNetTokenizer");
  mpnet.update({{"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}});
  const json bert = {{"model_type", "bert"}};
  struct Case {
    json tokenizer_config, config;
    std::vector<int32_t> ids;
  };
  const Case cases[] = {
      {nullptr, nullptr, kOwn},
      {Class("BertTokenizer"), nullptr, kLower},
      {Class("BertTokenizerFast"), bert, kLower},
      {Class("DistilBertTokenizer"), bert, kLower},
      {mpnet, bert, kMpnet},
      {Class("BertTokenizer"), {{"model_type", "modernbert"}}, kOwn},
      {Class("PreTrainedTokenizerFast"), bert, kOwn},
      {Class("ConvBertTokenizer"), bert, kOwn},
      {nullptr, bert, kLower},
      {nullptr, {{"model_type", "mpnet"}}, kLower},  // in tokenizer.json's template
      {nullptr, {{"model_type", "modernbert"}}, kOwn},
      {nullptr, {{"model_type", "bert"}, {"tokenizer_class", "TokenizersBackend"}}, kOwn},
      {Class("BertTokenizer"), {{"tokenizer_class", "TokenizersBackend"}}, kLower},
      {{{"do_lower_case", false}}, bert, kCased},
      {{{"do_lower_case", false}}, nullptr, kOwn},
      {{{"do_lower_case", false}, {"strip_accents", nullptr}}, bert, kCased},
      {all, bert, kBare}};
  for (const Case& one : cases) {
    EXPECT_EQ(Pair(Load(one.tokenizer_config, one.config)).token_ids, one.ids)
        << one.tokenizer_config << one.config;
  }
}

// Whatever stands between the first and the last token of the file's post_processor.
TEST(TokenizerConfigTest, ATokenizerOfBertPutsItsOwnTokensAroundTexts) {
  json file = File();
  json& processor = file["post_processor"];
  processor["single"][0]["SpecialToken"]["type_id"] = 1;
  processor["single"].insert(processor["single"].begin() + 1, processor["single"].back());
  processor["pair"].erase(4);
  processor["pair"][3]["Sequence"]["type_id"] = 0;
  std::swap(processor["pair"][1], processor["pair"][3]);
  const TokenizedText own = Pair(Load(nullptr, nullptr, file));
  EXPECT_EQ(own.token_ids, (std::vector<int32_t>{1, 11, 2, 4, 7, 10}));
  const auto bert = Load(Class("BertTokenizer"), nullptr, file);
  const TokenizedText pair = Pair(bert);
  EXPECT_EQ(pair.token_ids, kLower);
  EXPECT_EQ(pair.segment_ids, (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 1}));
  const auto single = (*bert)->Tokenize("b", {.max_tokens = 100});
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_EQ(single->token_ids, (std::vector<int32_t>{1, 11, 2}));
  EXPECT_EQ(single->segment_ids, (std::vector<int32_t>{0, 0, 0}));
}

TEST(TokenizerConfigTest, OnlyWordPieceIsMadeAnew) {
  json file = File();
  file["model"] = {{"type", "Unigram"},
                   {"unk_id", 0},
                   {"vocab", json::array({json::array({"[UNK]", 0}), json::array({"A", -1}),
                                          json::array({"a", -1})})}};
  const auto tokenizer = Load(Class("BertTokenizer"), nullptr, file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto tokens = (*tokenizer)->Tokenize("A", {.max_tokens = 10});
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->token_ids, (std::vector<int32_t>{1, 1, 2}));
}

TEST(TokenizerConfigTest, AWordPieceOfTheFirstYearIsMadeAnewToo) {
  json file = File();
  file["model"].erase("type");
  EXPECT_EQ(Pair(Load(nullptr, nullptr, file)).token_ids, kOwn);
  EXPECT_EQ(Pair(Load(Class("BertTokenizer"), nullptr, file)).token_ids, kLower);
}

TEST(TokenizerConfigTest, TextsBecomeLowerCaseBeforeTheNewNormalizerToo) {
  const json cased = {{"do_lower_case", false}};
  const json bert = {{"model_type", "bert"}};
  EXPECT_EQ(Pair(Load(cased, bert, File(), true)).token_ids,
            (std::vector<int32_t>{1, 3, 0, 8, 9, 2, 11, 2}));
  EXPECT_EQ(Pair(Load(nullptr, bert, File(), true)).token_ids, kLower);
}

TEST(TokenizerConfigTest, ContradictionsAreRefused) {
  const auto refused = [](const json& fields, const std::string& message,
                          const json& file = File()) {
    json config = Class("BertTokenizer");
    config.update(fields);
    const absl::Status status = Load(config, nullptr, file).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  refused({{"cls_token", "<s>"}}, "'[CLS]', but BertTokenizer of transformers takes '<s>' by");
  refused({{"sep_token", {{"content", "</s>"}}}},
          "takes '</s>' by tokenizer_config.json's sep_token");
  refused({{"tokenizer_class", "MPNetTokenizer"}}, "MPNetTokenizer of transformers takes '<s>'");
  refused({{"unk_token", "<unk>"}}, "takes '<unk>' by tokenizer_config.json's unk_token");
  refused({{"do_lower_case", "yes"}}, "do_lower_case");
  refused({{"model_input_names", "all"}}, "model_input_names");
  json file = File();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  refused(json::object(), "the pre_tokenizer is 'WhitespaceSplit'", file);
  EXPECT_TRUE(Load({{"cls_token", "<s>"}}, nullptr).ok()) << "of no class";
  for (const auto& [field, value, message] :
       {std::tuple("continuing_subword_prefix", json("@@"),
                   "model.continuing_subword_prefix is '@@', but BertTokenizer of transformers "
                   "takes '##'"),
        std::tuple("max_input_chars_per_word", json(200),
                   "model.max_input_chars_per_word is '200', but BertTokenizer of transformers "
                   "takes '100'")}) {
    json other = File();
    other["model"][field] = value;
    refused(json::object(), message, other);
    EXPECT_TRUE(Load(nullptr, nullptr, other).ok()) << "of no class";
  }
  json bare = File();
  bare["post_processor"] = nullptr;
  refused(json::object(), "the first token of post_processor is ''", bare);
  refused({{"cls_token", ""}, {"sep_token", ""}},
          "post_processor puts no special tokens around a text", bare);
  EXPECT_TRUE(Load(nullptr, {{"model_type", "bert"}}, bare).ok()) << "in tokenizer.json's template";
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", {{{"type", "BertPreTokenizer"}}}}};
  EXPECT_TRUE(Load(Class("BertTokenizer"), nullptr, file).ok());
  EXPECT_TRUE(Load({{"tokenizer_class", "BertTokenizer"},
                    {"cls_token", "[CLS]"},
                    {"sep_token", {{"content", "[SEP]"}}},
                    {"unk_token", nullptr}},
                   nullptr)
                  .ok());
}

// As transformers 4 saved it, with NFKC in place of the sentencepiece model's rules.
json DebertaFile() {
  json file = File();
  file["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [
    {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "NFKC"},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]})");
  file["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": true}]})");
  file["model"] = json::parse(R"({"type": "Unigram", "unk_id": 3, "vocab": [
    ["[PAD]", 0.0], ["[CLS]", 0.0], ["[SEP]", 0.0], ["[UNK]", 0.0], ["\u2581", -3.0], ["f", -3.0],
    ["i", -3.0], ["A", -3.0], ["a", -3.0], ["b", -3.0], [",", -3.0], ["\u2581b", -4.0]]})");
  return file;
}

TEST(TokenizerConfigTest, ATokenizerOfDebertaMakesItsNormalizerAndPreTokenizerAnew) {
  const std::vector<int32_t> own = {1, 4, 5, 6, 4, 7, 11, 10, 9, 2};  // as tokenizer.json says
  const std::vector<int32_t> anew = {1, 4, 3, 4, 7, 3, 9, 10, 9, 2};  // without NFKC
  const json deberta = {{"model_type", "deberta-v2"}};
  json all = Class("DebertaV2TokenizerFast");
  all.update({{"do_lower_case", true}, {"split_by_punct", true}});
  struct Case {
    json tokenizer_config, config;
    std::vector<int32_t> ids;
  };
  const Case cases[] = {{nullptr, nullptr, own},
                        {Class("PreTrainedTokenizerFast"), deberta, own},
                        {Class("DebertaV2Tokenizer"), nullptr, anew},
                        {nullptr, deberta, anew},
                        {all, deberta, {1, 4, 3, 4, 8, 3, 9, 4, 10, 11, 2}}};
  for (const Case& one : cases) {
    const auto tokenizer = Load(one.tokenizer_config, one.config, DebertaFile());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto tokens = (*tokenizer)->Tokenize("\ufb01 A\u00a0b,b", {.max_tokens = 100});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokens->token_ids, one.ids) << one.tokenizer_config << one.config;
  }
  EXPECT_EQ(Pair(Load(Class("DebertaV2Tokenizer"), nullptr)).token_ids, kOwn) << "of a WordPiece";
  json wrong = Class("DebertaV2Tokenizer");
  wrong["split_by_punct"] = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Load(wrong, nullptr, DebertaFile()).status()));
}

json RobertaFile(bool pre_tokenizer, bool processor) {
  json file = json::parse(R"({
    "pre_tokenizer": {"type": "ByteLevel", "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0],
                       "trim_offsets": true},
    "model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "\u0120": 2, "a": 3, "b": 4, "\u0120a": 5},
              "merges": ["\u0120 a"]}})");
  file["pre_tokenizer"]["add_prefix_space"] = pre_tokenizer;
  file["post_processor"]["add_prefix_space"] = processor;
  return file;
}

// And the offset of a first token with a space that is not in the text.
TEST(TokenizerConfigTest, ATokenizerOfRobertaMakesByteLevelAnew) {
  const std::vector<int32_t> bare = {0, 3, 2, 4, 1}, spaced = {0, 5, 2, 4, 1};
  const json roberta = {{"model_type", "roberta"}}, prefix = {{"add_prefix_space", true}};
  json named = Class("RobertaTokenizerFast"), other = Class("PreTrainedTokenizerFast");
  named.update(prefix);
  other.update(prefix);
  struct Case {
    json tokenizer_config, config, file;
    std::vector<int32_t> ids;
    uint32_t begin = 0;
  };
  const Case cases[] = {{nullptr, nullptr, RobertaFile(true, true), spaced},
                        {nullptr, nullptr, RobertaFile(true, false), spaced, 1},
                        {other, roberta, RobertaFile(false, false), bare},
                        {named, nullptr, RobertaFile(false, false), spaced},
                        {prefix, roberta, RobertaFile(false, true), spaced},
                        {nullptr, roberta, RobertaFile(true, true), bare},
                        {Class("RobertaTokenizer"), nullptr, RobertaFile(true, false), bare}};
  for (const Case& one : cases) {
    const auto tokenizer = Load(one.tokenizer_config, one.config, one.file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto tokens =
        (*tokenizer)->Tokenize("a b", {.max_tokens = 9, .offsets = OffsetUnit::kBytes});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokens->token_ids, one.ids) << one.tokenizer_config << one.config;
    EXPECT_EQ(tokens->offsets[1].begin, one.begin) << one.tokenizer_config << one.config;
  }
  EXPECT_EQ(Pair(Load(named, nullptr)).token_ids, kOwn) << "of another pre-tokenizer";
}

// The older file counts where tokenizer_config.json has no added_tokens_decoder.
TEST(TokenizerConfigTest, SpecialTokensMayStandInTheirOwnFile) {
  json file = File();
  for (const char* part : {"single", "pair"}) {
    for (json& token : file["post_processor"][part]) {
      if (token.contains("SpecialToken") && token["SpecialToken"]["id"] == "[CLS]") {
        token["SpecialToken"]["id"] = "<s>";
      }
    }
  }
  file["post_processor"]["special_tokens"] = {{"<s>", {{"ids", {3}}}}, {"[SEP]", {{"ids", {2}}}}};
  file["model"]["vocab"].erase("a");
  file["model"]["vocab"]["<s>"] = 3;
  json config = Class("BertTokenizer");
  config["cls_token"] = "[CLS]";
  const auto load = [&](const json& tokenizer_config) {
    const TempDirectory directory;
    WriteFile(directory / "tokenizer.json", file.dump());
    WriteFile(directory / "tokenizer_config.json", tokenizer_config.dump());
    WriteFile(directory / "special_tokens_map.json", R"({"cls_token": {"content": "<s>"}})");
    return LoadTokenizer(directory.path()).status();
  };
  EXPECT_TRUE(load(config).ok()) << load(config);
  config["added_tokens_decoder"] = json::object();
  EXPECT_THAT(std::string(load(config).message()), HasSubstr("'<s>', but BertTokenizer"));
}

TEST(TokenizerConfigTest, OnlySpecialTokensOfATextAreSplit) {
  json file = File();
  file["added_tokens"] = {AddedTokenJson("[SEP]", 2, true), AddedTokenJson("ab", 12, false)};
  const auto ids = [&](const json& config) { return Ids(Load(config, nullptr, file), "[SEP] ab"); };
  EXPECT_EQ(ids(nullptr), (std::vector<int32_t>{1, 2, 12, 2}));
  EXPECT_EQ(ids({{"split_special_tokens", true}}), (std::vector<int32_t>{1, 0, 0, 0, 12, 2}));
}

TEST(TokenizerConfigTest, ANamedTokenThatTheVocabularyLacksIsText) {
  const auto ids = [](const std::string& token) {
    return Ids(Load({{"bos_token", token}}, nullptr), "aqe");
  };
  EXPECT_EQ(ids("a"), (std::vector<int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(ids("q"), (std::vector<int32_t>{1, 0, 2})) << "one word";
}

TEST(TokenizerConfigTest, WithoutTokenTypeIdsEverySegmentIsZero) {
  const std::vector<int32_t> none(8, 0), own = {0, 0, 0, 0, 0, 0, 1, 1};
  const json with = json::array({"input_ids", "token_type_ids", "attention_mask"});
  const json without = json::array({"input_ids", "attention_mask"});
  const auto segments = [](const json& tokenizer_config, const json& config) {
    std::vector<int32_t> found = Pair(Load(tokenizer_config, config)).segment_ids;
    if (found.size() == 7) found.insert(found.begin(), 0);  // one word for two ideographs
    return found;
  };
  const auto named = [](const std::string& name, const json& inputs) {
    json config = Class(name);
    config["model_input_names"] = inputs;
    return config;
  };
  const json bert = {{"model_type", "bert"}};
  EXPECT_EQ(segments(named("BertTokenizer", without), bert), none);
  EXPECT_EQ(segments({{"model_input_names", without}}, nullptr), none);
  EXPECT_EQ(segments(named("PreTrainedTokenizerFast", with), bert), own);
  EXPECT_EQ(segments(Class("BertTokenizer"), nullptr), own);
  EXPECT_EQ(segments(nullptr, bert), own);
  EXPECT_EQ(segments(nullptr, nullptr), own);
  EXPECT_EQ(segments(Class("DistilBertTokenizer"), bert), none);
  EXPECT_EQ(segments(Class("PreTrainedTokenizerFast"), bert), none);
  EXPECT_EQ(segments(nullptr, {{"model_type", "new"}}), none);
}

}  // namespace
}  // namespace attendant
