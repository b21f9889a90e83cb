// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/bert_tokenizer.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// [SEP] stands for two tokens, and only [CLS] is an added token.
json Valid() {
  json file = BertTokenizerJson({"[UNK]", "[CLS]", "[SEP]", "a", "##b"});
  file["added_tokens"] = json::array({AddedTokenJson("[CLS]", 1, true)});
  json& processor = file["post_processor"];
  processor["single"][2]["SpecialToken"]["type_id"] = 1;
  processor["pair"] = json::array();
  processor["special_tokens"]["[SEP]"]["ids"] = {2, 0};
  processor["special_tokens"]["[SEP]"]["tokens"] = {"[SEP]", "[UNK]"};
  return file;
}

absl::StatusOr<TokenizerParts> Parse(const json& file) { return ParseTokenizerJson(file.dump()); }

// `file` with the value at `pointer` replaced.
json With(const std::string& pointer, json value) {
  json file = Valid();
  file[json::json_pointer(pointer)] = std::move(value);
  return file;
}

json Without(const std::string& parent, const std::string& key) {
  json file = Valid();
  file[json::json_pointer(parent)].erase(key);
  return file;
}

void ExpectStatus(const json& file, absl::StatusCode code, const std::string& message) {
  const absl::Status status = Parse(file).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

void ExpectInvalid(const json& file, const std::string& message) {
  ExpectStatus(file, absl::StatusCode::kInvalidArgument, message);
}

void ExpectUnimplemented(const json& file, const std::string& message) {
  ExpectStatus(file, absl::StatusCode::kUnimplemented, message);
}

std::string Normalized(const TokenizerParts& parts, const std::string& text) {
  std::string normalized;
  parts.normalizer->Append(text, normalized.max_size(), normalized);
  return normalized;
}

TEST(TokenizerJsonTest, ReadsAValidFile) {
  const absl::StatusOr<TokenizerParts> config = Parse(Valid());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab, 5);
  EXPECT_EQ(config->strings.Find(4), "##b");
  EXPECT_EQ(config->model->FindToken("##b"), 4);
  EXPECT_EQ(Normalized(*config, "\x01\xC3\x89"), "e");  // strip_accents follows lowercase
  ASSERT_EQ(config->added_tokens.size(), 1u);
  EXPECT_EQ(config->added_tokens[0].content, "[CLS]");
  const std::vector<TemplatePart>& single = config->sequence.single;
  ASSERT_EQ(single.size(), 4u);
  EXPECT_EQ(single[0].id, 1);
  EXPECT_EQ(single[1].text, 0);
  EXPECT_EQ(single[2].id, 2);
  EXPECT_EQ(single[3].id, 0);
  EXPECT_EQ(single[3].segment_id, 1);
  EXPECT_TRUE(config->sequence.pair.empty());
}

TEST(TokenizerJsonTest, AcceptsTheFormatsVariants) {
  EXPECT_TRUE(Parse(Without("/model", "type")).ok());
  EXPECT_TRUE(Parse(Without("", "added_tokens")).ok());
  EXPECT_TRUE(Parse(Without("/normalizer", "strip_accents")).ok());
  for (const char* part : {"normalizer", "pre_tokenizer"}) {
    const std::string list = part == std::string("normalizer") ? "normalizers" : "pretokenizers";
    const json wrapped = {{"type", "Sequence"}, {list, json::array({Valid()[part]})}};
    const absl::StatusOr<TokenizerParts> config = Parse(With(std::string("/") + part, wrapped));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(Normalized(*config, "\x01\xC3\x89"), "e");
  }
  const absl::StatusOr<TokenizerParts> raw = Parse(With("/normalizer", nullptr));
  ASSERT_TRUE(raw.ok()) << raw.status();
  EXPECT_EQ(raw->normalizer, nullptr);
  const absl::StatusOr<TokenizerParts> bare = Parse(With("/post_processor", nullptr));
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->sequence.single.size(), 1u);
  EXPECT_EQ(bare->sequence.pair.size(), 2u);
}

TEST(TokenizerJsonTest, APairHasEachTextOnce) {
  const json a = json::parse(R"({"Sequence": {"id": "A", "type_id": 0}})");
  const json b = json::parse(R"({"Sequence": {"id": "B", "type_id": 1}})");
  const auto parts = [](const json& pair) {
    const absl::StatusOr<TokenizerParts> config = Parse(With("/post_processor/pair", pair));
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->sequence.pair.size() : 0;
  };
  EXPECT_EQ(parts(json::array({a, b})), 2u);
  EXPECT_EQ(parts(json::array({b, a})), 2u);
  for (const json& pair :
       {json::array({a}), json::array({b}), json::array({a, a, b}), json::array({a, b, b})}) {
    EXPECT_EQ(parts(pair), 0u) << pair;
  }
}

TEST(TokenizerJsonTest, AccentsAndCaseAreTwoThings) {
  for (const bool strip : {true, false}) {
    json file = With("/normalizer/strip_accents", strip);
    for (const bool lowercase : {true, false}) {
      file["normalizer"]["lowercase"] = lowercase;
      const absl::StatusOr<TokenizerParts> parts = Parse(file);
      ASSERT_TRUE(parts.ok()) << parts.status();
      const char* expected =
          strip ? (lowercase ? "e" : "E") : (lowercase ? "\xC3\xA9" : "\xC3\x89");
      EXPECT_EQ(Normalized(*parts, "\xC3\x89"), expected);
    }
  }
}

TEST(TokenizerJsonTest, ReadsBertProcessing) {
  const absl::StatusOr<TokenizerParts> config = Parse(
      With("/post_processor",
           json::parse(R"({"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]})")));
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->sequence.single.size(), 3u);
  EXPECT_EQ(config->sequence.single[0].id, 1);
  EXPECT_EQ(config->sequence.single[1].text, 0);
  EXPECT_EQ(config->sequence.single[2].id, 2);
}

TEST(TokenizerJsonTest, AnAddedTokenMayFollowTheVocabulary) {
  json token = Valid()["added_tokens"][0];
  token["content"] = "[NEW]";
  token["id"] = 5;
  const absl::StatusOr<TokenizerParts> config = Parse(With("/added_tokens/1", token));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab, 6);
}

// The library counts the vocabulary's tokens, so it may give an id that one of them has.
TEST(TokenizerJsonTest, AnAddedTokenMayTakeTheIdOfAnotherOne) {
  json file = With("/model/vocab/##b", 5);
  file["added_tokens"].push_back(AddedTokenJson("[NEW]", 5, true));
  const absl::StatusOr<TokenizerParts> parts = Parse(file);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->model->FindToken("##b"), 5);
  file["added_tokens"].push_back(AddedTokenJson("##b", 5, true));
  ExpectInvalid(file, "added_tokens[2].id is that of another added token");
}

TEST(TokenizerJsonTest, NamesThePartThatIsNotSupported) {
  ExpectUnimplemented(With("/model/type", "WordLevel"),
                      "model type 'WordLevel' is not supported; supported: ");
  ExpectUnimplemented(With("/normalizer/type", "Nmt"), "normalizer type 'Nmt'");
  ExpectUnimplemented(
      With("/normalizer",
           json::parse(R"({"type": "Sequence", "normalizers": [{"type": "Lower"}]})")),
      "normalizer type 'Lower'");
  ExpectUnimplemented(With("/pre_tokenizer/type", "Whitespace"), "pre_tokenizer type 'Whitespace'");
  ExpectUnimplemented(With("/post_processor/type", "Other"), "'Other'");
  ExpectUnimplemented(With("/post_processor/single", json::array()), "the text 0 times");
  ExpectUnimplemented(
      With("/post_processor/single", json::parse(R"([{"Sequence": {"id": "A", "type_id": 0}},
                                           {"Sequence": {"id": "A", "type_id": 0}}])")),
      "the text 2 times");
  ExpectUnimplemented(With("/version", "2.0"), "version '2.0'");
}

TEST(TokenizerJsonTest, NamesTheMemberThatIsNotValid) {
  ExpectInvalid(Without("", "model"), "model is not an object");
  ExpectInvalid(With("/model", 7), "model is not an object");
  ExpectInvalid(With("/model/vocab", json::array({"a"})), "model.vocab is not an object");
  ExpectInvalid(With("/model/vocab/a", "3"), "model.vocab.a is not a whole number");
  ExpectInvalid(With("/model/vocab/a", -1), "model.vocab.a is not a whole number");
  ExpectInvalid(With("/model/vocab/a", 1.5), "model.vocab.a is not a whole number");
  ExpectInvalid(With("/model/vocab/a", 2147483647), "from 0 to 2147483646");
  ExpectInvalid(With("/model/vocab/a", 2), "has another token's id");
  ExpectInvalid(Without("/model", "unk_token"), "model.unk_token is not a string");
  ExpectInvalid(With("/model/unk_token", "<unk>"), "model.unk_token is not in model.vocab");
  ExpectInvalid(Without("/model/vocab", "[UNK]"), "model.unk_token is not in model.vocab");
  ExpectInvalid(With("/model/vocab", json::object()), "model.unk_token is not in model.vocab");
  ExpectInvalid(With("/model/max_input_chars_per_word", -5), "model.max_input_chars_per_word");
  ExpectInvalid(With("/model/continuing_subword_prefix", nullptr),
                "model.continuing_subword_prefix");
  ExpectInvalid(With("/normalizer", "lower"), "normalizer is not an object");
  ExpectInvalid(With("/normalizer/lowercase", "yes"), "normalizer.lowercase is not true or false");
  ExpectInvalid(Without("/normalizer", "clean_text"), "normalizer.clean_text");
  ExpectInvalid(With("/added_tokens", json::object()), "added_tokens is not an array");
  ExpectInvalid(With("/added_tokens/0", "[CLS]"), "added_tokens[0] is not an object");
  ExpectInvalid(With("/added_tokens/0/lstrip", 1), "added_tokens[0].lstrip");
  ExpectInvalid(With("/added_tokens/0/id", 3), "added_tokens[0].id is 3, but '[CLS]' has the id 1");
  ExpectInvalid(With("/added_tokens/0/content", "[NEW]"), "id 5 as the next after model.vocab");
  ExpectInvalid(With("/post_processor/single/0/SpecialToken/id", "[X]"),
                "post_processor.special_tokens.[X] is not an object");
  ExpectInvalid(With("/post_processor/special_tokens/[CLS]/ids/0", -1),
                "post_processor.special_tokens.[CLS].ids[0]");
  ExpectInvalid(With("/post_processor/single/1/Sequence/id", "B"), "is not 'A'");
  ExpectInvalid(With("/post_processor/single/1", 3), "post_processor.single[1] is not an object");
  ExpectInvalid(With("/version", 1), "version is not a string");
}

TEST(TokenizerJsonTest, RefusesWhatIsNoFileOfTheFormat) {
  for (const char* contents :
       {"", "x", "{", "[1, 2", "{\"model\": }", "\"\xFF\"", "{\"a\": 1e999}"}) {
    const absl::Status status = ParseTokenizerJson(contents).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << contents;
  }
  ExpectInvalid(json::array(), "the file is not an object");
  ExpectInvalid(nullptr, "the file is not an object");
  ExpectInvalid(json::object(), "model is not an object");
}

TEST(TokenizerJsonTest, RefusesDeepNestingUnparsed) {
  const std::string brackets(1000000, '[');
  const absl::Status status = ParseTokenizerJson(brackets).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nested deeper than the limit of 64"));
  // Brackets in strings do not count.
  json file = Valid();
  file["comment"] = std::string(100, '[') + "\"\\" + std::string(100, '{');
  EXPECT_TRUE(Parse(file).ok());
}

TEST(TokenizerJsonTest, EveryTruncatedFileIsRefused) {
  const std::string contents = Valid().dump();
  for (size_t size = 0; size < contents.size(); ++size) {
    EXPECT_FALSE(ParseTokenizerJson(absl::string_view(contents).substr(0, size)).ok()) << size;
  }
}

// Every value of the file, whatever it is, replaced by every other kind of value: no crash.
TEST(TokenizerJsonTest, AnyValueMayBeAnything) {
  const json flat = Valid().flatten();
  const std::vector<json> values = {nullptr,          true,          -1, 1e300, "x",
                                    json::array({1}), json::object()};
  int refused = 0;
  for (const auto& [pointer, original] : flat.items()) {
    for (json::json_pointer place(pointer); !place.empty(); place.pop_back()) {
      for (const json& value : values) {
        json file = Valid();
        file[place] = value;
        refused += !Parse(file).ok();
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace attendant
