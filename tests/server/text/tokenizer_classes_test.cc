// SPDX-License-Identifier: Apache-2.0
// Folders whose files name a class that does not take all of tokenizer.json, against AutoTokenizer
// of transformers; make_classes.py in tests/golden/tokenizer says what they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;

json ReadGolden(const std::string& path) {
  std::ifstream file("tests/golden/" + path);
  return json::parse(file);
}

// The tokenizer.json of a case.
json FileOf(const json& one) {
  json file = ReadGolden(one["file"]);
  for (const auto& [pointer, value] : one["changes"].items()) {
    file[json::json_pointer(pointer)] = value;
  }
  return file;
}

// transformers gives a token that the file does not have the next id, which no model knows. Here
// such a token is text.
bool IsOfTheFile(const std::vector<int32_t>& ids, const json& file) {
  auto known = static_cast<int32_t>(file["model"]["vocab"].size());
  for (const json& token : file["added_tokens"]) {
    known = std::max(known, token["id"].get<int32_t>() + 1);
  }
  return std::all_of(ids.begin(), ids.end(), [known](int32_t id) { return id < known; });
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadCase(const json& one, const json& file) {
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", file.dump());
  for (const auto& [name, contents] : one["folder"].items()) {
    WriteFile(directory / name, contents.dump());
  }
  return LoadTokenizer(directory.path());
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadCase(const json& one) {
  return LoadCase(one, FileOf(one));
}

TEST(TokenizerClassesTest, IdsAreThoseOfTransformers) {
  const json golden = ReadGolden("tokenizer/classes.json");
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  ASSERT_GE(golden["cases"].size(), 10u);
  for (const json& one : golden["cases"]) {
    const auto name = one["name"].get<std::string>();
    const auto tokenizer = LoadCase(one);
    EXPECT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.status();
    if (!tokenizer.ok()) continue;
    const json file = FileOf(one);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto expected = one["ids"][i].get<std::vector<int32_t>>();
      if (!IsOfTheFile(expected, file)) continue;
      const auto tokens = (*tokenizer)->Tokenize(texts[i], {.max_tokens = 1000});
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(tokens->token_ids, expected) << name << ": '" << texts[i] << "'";
    }
    const auto pair = (*tokenizer)->TokenizePair(texts[0], texts[1], {.max_tokens = 1000});
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->token_ids, one["pair"].get<std::vector<int32_t>>()) << name;
  }
}

// The published files of GPT-2, RoBERTa, XLM-R and T5 are of the format's first year.
TEST(TokenizerClassesTest, OldFilesGiveTheirModelNoType) {
  const json golden = ReadGolden("tokenizer/classes.json");
  for (const json& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    json file = FileOf(one);
    ASSERT_EQ(file["model"].erase("type"), 1u);
    const auto tokenizer = LoadCase(one, file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto pair =
        (*tokenizer)
            ->TokenizePair(golden["texts"][0].get<std::string>(),
                           golden["texts"][1].get<std::string>(), {.max_tokens = 1000});
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->token_ids, one["pair"].get<std::vector<int32_t>>());
  }
}

// As gte-Qwen2's own code does. transformers without that code adds none.
TEST(TokenizerClassesTest, CodeOfQwen2PutsATokenBehindATextThatIsNotInTheFile) {
  const std::string end = "<|endoftext|>";
  const json names = {"tokenization_qwen.Qwen2Tokenizer", "tokenization_qwen.Qwen2TokenizerFast"};
  json config = {{"tokenizer_class", "Qwen2Tokenizer"},
                 {"eos_token", end},
                 {"add_eos_token", true},
                 {"auto_map", {{"AutoTokenizer", names}}}};
  json one = {{"file", "encoder/tiny_qwen2/tokenizer.json"},
              {"changes", {{"/post_processor", nullptr}}},
              {"folder", {{"tokenizer_config.json", config}}}};
  const auto ids = [&] {
    const auto tokenizer = LoadCase(one);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto tokens = (*tokenizer)->Tokenize("cat", {.max_tokens = 10});
    const auto pair = (*tokenizer)->TokenizePair("cat", "cat", {.max_tokens = 10});
    EXPECT_TRUE(tokens.ok() && pair.ok());
    EXPECT_EQ(pair->token_ids.size(), 2 * tokens->token_ids.size());
    return tokens->token_ids;
  };
  const std::vector<int32_t> with = ids();
  ASSERT_FALSE(with.empty());
  EXPECT_EQ(with.back(), 0);
  one["folder"]["tokenizer_config.json"]["add_eos_token"] = false;
  const std::vector<int32_t> without = ids();
  EXPECT_EQ(std::vector<int32_t>(with.begin(), with.end() - 1), without);
  one["folder"]["tokenizer_config.json"]["add_eos_token"] = true;
  one["folder"]["tokenizer_config.json"]["auto_map"]["AutoTokenizer"] = {"a.B", "a.BFast"};
  EXPECT_EQ(ids(), without);
  config["eos_token"] = "<none>";
  one["folder"]["tokenizer_config.json"] = config;
  EXPECT_THAT(std::string(LoadCase(one).status().message()),
              testing::HasSubstr("added_tokens has no '<none>', the eos_token"));
}

TEST(TokenizerClassesTest, AnotherModelThanTheClassMakesIsRefused) {
  const auto refused = [](const std::string& pointer, const json& value,
                          const std::string& message) {
    const json one = {
        {"file", "tokenizer/families/xlm_roberta.json"},
        {"changes", {{pointer, value}}},
        {"folder", {{"tokenizer_config.json", {{"tokenizer_class", "XLMRobertaTokenizer"}}}}}};
    const absl::Status status = LoadCase(one).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  };
  refused("/model/unk_id", 0, "model.unk_id is 0, but XLMRobertaTokenizer of transformers takes 3");
  refused("/model/byte_fallback", true,
          "byte_fallback is true, but XLMRobertaTokenizer of transformers takes false");
  refused("/model/vocab/2/0", "x",
          "model.vocab has no '</s>', the eos_token of XLMRobertaTokenizer");
  refused("/normalizer/normalizers/0/precompiled_charsmap", "*", "is not base64");
}

TEST(TokenizerClassesTest, AModelThatAClassWouldReadAsAnotherIsRefused) {
  const auto refused = [](const std::string& name, const std::string& file, const json& changes,
                          const std::string& message) {
    const json one = {{"file", file},
                      {"changes", changes},
                      {"folder", {{"tokenizer_config.json", {{"tokenizer_class", name}}}}}};
    const absl::Status status = LoadCase(one).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << ' ' << file << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  };
  const std::string bytes = "tokenizer/families/roberta.json";
  const std::string pieces = "tokenizer/families/gemma.json";
  refused("MPNetTokenizer", bytes, json::object(),
          "model.type is BPE, but MPNetTokenizer of transformers takes WordPiece");
  refused("GPT2Tokenizer", "tokenizer/families/xlm_roberta.json", json::object(),
          "model.type is Unigram, but GPT2Tokenizer of transformers takes BPE");
  refused("LlamaTokenizer", pieces, json::object(),
          "model.unk_token is '<unk>', but LlamaTokenizer of transformers takes none");
  refused("LlamaTokenizer", pieces, {{"/model/byte_fallback", false}},
          "model.byte_fallback is false, but LlamaTokenizer of transformers takes true");
  refused("LlamaTokenizerFast", pieces, {{"/model/ignore_merges", true}},
          "model.ignore_merges is true, but LlamaTokenizer of transformers takes false");
  refused("LlamaTokenizer", "tokenizer/families/xlm_roberta.json", json::object(),
          "model.type is Unigram, but LlamaTokenizer of transformers takes BPE");
  refused("Qwen2TokenizerFast", pieces, {{"/model/unk_token", nullptr}},
          "model.byte_fallback is true, but Qwen2Tokenizer of transformers takes false");
  refused("GPT2Tokenizer", pieces, json::object(),
          "model.unk_token is '<unk>', but GPT2Tokenizer of transformers takes none");
  refused("Qwen2Tokenizer", "tokenizer/families/llama.json", json::object(),
          "model.ignore_merges is true, but Qwen2Tokenizer of transformers takes false");
  refused("GPT2Tokenizer", bytes, {{"/model/end_of_word_suffix", "</w>"}},
          "model.end_of_word_suffix is '</w>', but GPT2Tokenizer of transformers takes none");
}

}  // namespace
}  // namespace attendant
