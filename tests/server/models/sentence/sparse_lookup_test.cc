// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/sparse_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/io/json_file.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kGolden = "tests/golden/routed/";
constexpr int64_t kVocab = 96;  // of the golden encoders

// A folder's tokenizer and what it looks up.
struct Queries {
  std::unique_ptr<Tokenizer> tokenizer;
  SparseLookup lookup;
};

Queries ReadGolden(const std::string& name) {
  const ModelFolder folder = *FindModelFolder(kGolden + name);
  Queries queries{.tokenizer = *LoadTokenizer(folder.encoder), .lookup = {}};
  queries.lookup =
      *ReadSparseLookup(*folder.query, folder.encoder.path(), *queries.tokenizer, kVocab);
  return queries;
}

// The text's tokens without the special ones, [CLS] and [SEP].
std::vector<int32_t> TokensOf(const Queries& queries, const std::string& text) {
  TokenizedText tokens =
      *queries.tokenizer->Tokenize(text, {.max_tokens = queries.lookup.max_tokens + 2});
  return {tokens.token_ids.begin() + 1, tokens.token_ids.end() - 1};
}

class SparseLookupGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(SparseLookupGoldenTest, GivesTheVectorsOfSentenceTransformers) {
  const Queries queries = ReadGolden(GetParam());
  EXPECT_EQ(queries.lookup.tokenizer, nullptr);  // the same file twice
  EXPECT_EQ(queries.lookup.max_tokens, 40);
  const JsonNode expected = *ReadJsonFile(kGolden + GetParam() + "/expected.json");
  const std::vector<JsonNode> texts = *expected.Field("texts")->Elements();
  const std::vector<JsonNode> vectors = *expected.Field("query")->Elements();
  ASSERT_GE(texts.size(), 6u);
  bool below_zero = false;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string text;
    ASSERT_TRUE(texts[i].Get(text).ok());
    const HeadResult found = queries.lookup.Weigh(TokensOf(queries, text), 0);
    const std::vector<JsonNode> pairs = *vectors[i].Elements();
    ASSERT_EQ(found.indices.size(), pairs.size()) << text;
    for (size_t j = 0; j < pairs.size(); ++j) {
      int64_t id = 0;
      double weight = 0;
      ASSERT_TRUE((*pairs[j].Elements())[0].Get(id).ok());
      ASSERT_TRUE((*pairs[j].Elements())[1].Get(weight).ok());
      EXPECT_EQ(found.indices[j], id) << text;
      EXPECT_FLOAT_EQ(found.values[j], static_cast<float>(weight)) << text;
      below_zero = below_zero || weight < 0;
    }
  }
  EXPECT_TRUE(below_zero);
}

INSTANTIATE_TEST_SUITE_P(Folders, SparseLookupGoldenTest,
                         testing::Values("routed", "in_root", "idf", "weights_txt"));

TEST(SparseLookupTest, WeighsEachIdOnceAndLeavesOutZeros) {
  const SparseLookup lookup{.weights = {0, 1, -3, 2, 0}, .max_tokens = 8, .tokenizer = nullptr};
  const std::vector<int32_t> ids = {3, 1, 0, 3, 2, 4, 1};
  EXPECT_THAT(lookup.Weigh(ids, 0).indices, ElementsAre(1, 2, 3));
  EXPECT_THAT(lookup.Weigh(ids, 0).values, ElementsAre(1, -3, 2));
  EXPECT_THAT(lookup.Weigh(ids, 3).indices, ElementsAre(1, 2, 3));
  EXPECT_THAT(lookup.Weigh(ids, 2).indices, ElementsAre(2, 3));
  EXPECT_THAT(lookup.Weigh({}, 0).indices, IsEmpty());
}

TEST(SparseLookupTest, OfEqualWeightsTheLowerIdsAreKept) {
  const SparseLookup lookup{.weights = {1, 1, 1, 5}, .max_tokens = 8, .tokenizer = nullptr};
  const std::vector<int32_t> ids = {3, 2, 1, 0};
  EXPECT_THAT(lookup.Weigh(ids, 2).indices, ElementsAre(0, 3));
}

// A module's folder beside the golden tokenizer, of which `file` is replaced.
absl::Status ReadModuleWith(const std::string& file, const std::string& contents) {
  const TempDirectory directory;
  std::filesystem::copy(kGolden + "routed/query_0_SparseStaticEmbedding", directory.path());
  WriteFile(directory / file, contents);
  const std::string encoder = kGolden + "routed/document_0_Transformer";
  const auto tokenizer = LoadTokenizer(encoder);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return ReadSparseLookup({.folder = directory.path()}, encoder, **tokenizer, kVocab).status();
}

TEST(SparseLookupTest, SaysWhatIsWrongWithAModule) {
  const auto weights = [](const std::string& name, const std::vector<int64_t>& dims, float value) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return SafetensorsBytes(
        {FloatTensor(name, dims, std::vector<float>(static_cast<size_t>(count), value))});
  };
  constexpr char kWeights[] = "model.safetensors";
  EXPECT_TRUE(ReadModuleWith(kWeights, weights("weight", {kVocab}, 1)).ok());
  const std::pair<std::string, const char*> cases[] = {
      {weights("other", {kVocab}, 1), "tensor `weight` is missing"},
      {weights("weight", {kVocab, 1}, 1), "has 2 dimensions"},
      {weights("weight", {kVocab + 1}, 1), "at most the 96 ids of the encoder"},
      {weights("weight", {3}, 1), "there are 3 weights for the 96 ids"},
      {weights("weight", {kVocab}, std::numeric_limits<float>::infinity()), "weight"},
      {"no tensors", "model.safetensors"}};
  for (const auto& [contents, message] : cases) {
    const absl::Status status = ReadModuleWith(kWeights, contents);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  EXPECT_TRUE(absl::IsUnimplemented(ReadModuleWith("config.json", R"({"path": "a/idf.json"})")));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadModuleWith("config.json", "[")));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadModuleWith("tokenizer.json", "{")));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadModuleWith("tokenizer_config.json", R"({"model_max_length": 0})")));
}

TEST(SparseLookupTest, SaysWhatIsWrongWithAFileOfWeights) {
  const auto tokenizer = LoadTokenizer(kGolden + "idf");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto read = [&](const char* file, const std::string& contents) {
    const TempDirectory directory;
    WriteFile(directory / file, contents);
    return ReadSparseLookup({.folder = directory.path(), .file = file}, directory.path(),
                            **tokenizer, kVocab);
  };
  // Words that are no token are left out; without tokenizer_config.json no text is cut.
  const auto lookup = read("query_token_weights.txt", "the\t2.5\nno token\t1e9\n\n");
  ASSERT_TRUE(lookup.ok()) << lookup.status();
  EXPECT_EQ(lookup->max_tokens, std::numeric_limits<int32_t>::max());
  std::vector<int32_t> all(kVocab);
  for (int32_t id = 0; id < kVocab; ++id) all[static_cast<size_t>(id)] = id;
  EXPECT_THAT(lookup->Weigh(all, 0).values, ElementsAre(2.5f));
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"query_token_weights.txt", "the\t2\nfox 3", "line 2 is not a token, a tab"},
      {"query_token_weights.txt", "the\tx", "line 1"},
      {"query_token_weights.txt", "the\t1e99", "line 1"},
      {"query_token_weights.txt", "the\tnan", "line 1"},
      {"idf.json", R"({"the": 1e99})", "`the` is no finite f32"},
      {"idf.json", R"({"the": "a"})", "`the`"},
      {"idf.json", "[1]", "idf.json"}};
  for (const auto& [file, contents, message] : cases) {
    const absl::Status status = read(file, contents).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << contents << " " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(SparseLookupTest, PromptsAreQueriesByTheirNames) {
  Prompts prompts;
  prompts.by_name["passage"].text = "passage: ";
  AddLookup({.folder = std::string(), .file = "", .is_default = false}, prompts);
  EXPECT_EQ(prompts.default_name, "document");
  ASSERT_NE(*prompts.Find("query"), nullptr);
  EXPECT_TRUE((*prompts.Find("query"))->looks_up);
  EXPECT_FALSE((*prompts.Find("passage"))->looks_up);
  EXPECT_EQ(*prompts.Find(std::nullopt), nullptr);
  prompts.default_name = "";
  AddLookup({.folder = std::string(), .file = "", .is_default = true}, prompts);
  EXPECT_EQ(prompts.default_name, "query");
  EXPECT_TRUE((*prompts.Find("passage"))->looks_up);
  EXPECT_EQ(*prompts.Find("document"), nullptr);
}

}  // namespace
}  // namespace attendant
