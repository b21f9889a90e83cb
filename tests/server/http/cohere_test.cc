// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/http/doors_fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kPath[] = "/v2/embed";

class CohereTest : public DoorsTest {
 protected:
  HttpAnswer Embed(const std::string& fields) {
    return Post(kPath,
                absl::StrCat(R"({"model":"tiny","texts":["hello world","hello"])", fields, "}"));
  }
};

TEST_F(CohereTest, EveryType) {
  const auto expected = ByGrpc({"hello world", "hello"});
  const HttpAnswer answer = Embed(
      R"(,"input_type":"search_query","embedding_types":["float","base64","binary","ubinary"])");
  ASSERT_EQ(answer.code, 200) << answer.body;
  const nlohmann::json json = Json(answer);
  EXPECT_NE(json["id"], "");
  EXPECT_EQ(json["response_type"], "embeddings_by_type");
  EXPECT_EQ(json["meta"]["billed_units"]["input_tokens"], 7);
  const nlohmann::json& embeddings = json["embeddings"];
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(embeddings["float"][i].get<std::vector<float>>(), expected[i]);
    std::string bytes;
    ASSERT_TRUE(absl::Base64Unescape(embeddings["base64"][i].get<std::string>(), &bytes));
    EXPECT_EQ(std::memcmp(bytes.data(), expected[i].data(), bytes.size()), 0);
    ASSERT_EQ(embeddings["ubinary"][i].size(), 2u);
    for (size_t value = 0; value < 16; ++value) {
      const int byte = embeddings["ubinary"][i][value / 8];
      EXPECT_EQ(byte >> (7 - value % 8) & 1, expected[i][value] > 0 ? 1 : 0);
      EXPECT_EQ(embeddings["binary"][i][value / 8], byte - 128);
    }
  }
}

TEST_F(CohereTest, Version1HasFloatsAloneWithoutTypes) {
  const auto expected = ByGrpc({"hello world", "hello"});
  const auto embed = [this](const std::string& fields) {
    return Json(Post("/v1/embed", absl::StrCat(R"({"model":"tiny","texts":["hello world","hello"])",
                                               fields, "}")));
  };
  const nlohmann::json floats = embed("");
  ASSERT_EQ(floats["response_type"], "embeddings_floats") << floats;
  EXPECT_EQ(floats["embeddings"].get<std::vector<std::vector<float>>>(), expected);
  EXPECT_EQ(floats["meta"]["api_version"]["version"], "1");
  EXPECT_EQ(floats["meta"]["billed_units"]["input_tokens"], 7);
  const nlohmann::json by_type = embed(R"(,"embedding_types":["float","int8"])");
  EXPECT_EQ(by_type["response_type"], "embeddings_by_type");
  EXPECT_EQ(by_type["embeddings"]["float"], floats["embeddings"]);
  EXPECT_EQ(by_type["embeddings"]["int8"].size(), 2u);
}

TEST_F(CohereTest, InputsAreTexts) {
  const auto embed = [this](const std::string& content) {
    return Post(kPath, absl::StrCat(R"({"model":"tiny","inputs":[{"content":)", content, "}]}"));
  };
  EXPECT_EQ(Json(embed(R"([{"type":"text","text":"hello"}])"))["embeddings"]["float"]
                .get<std::vector<std::vector<float>>>(),
            ByGrpc({"hello"}));
  for (const char* content :
       {"1", "[]", "[1]", R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])",
        R"([{"type":"image_url","image_url":{"url":"data:"}}])", R"([{"type":"text","text":1}])",
        R"([{"type":"image_url","text":"a"}])", R"([{"text":"a"}])"}) {
    const HttpAnswer answer = embed(content);
    EXPECT_EQ(answer.code, 400) << content;
    EXPECT_THAT(answer.body, HasSubstr("inputs[0].content must be an array of one object"));
  }
  EXPECT_THAT(Post(kPath, R"({"model":"tiny","inputs":"a"})").body,
              HasSubstr("inputs must be an array of objects"));
  EXPECT_THAT(Post(kPath, R"({"model":"tiny","inputs":[{}],"texts":["a"]})").body,
              HasSubstr("texts and inputs exclude each other"));
  EXPECT_THAT(Post(kPath, R"({"model":"tiny","texts":["a"],"images":["data:"]})").body,
              HasSubstr("images must be absent, not an array"));
}

TEST_F(CohereTest, FloatIsTheDefault) {
  const nlohmann::json json = Json(Embed(R"(,"output_dimension":4)"));
  ASSERT_TRUE(json.contains("embeddings"));
  EXPECT_EQ(json["embeddings"].size(), 1u);
  EXPECT_EQ(json["embeddings"]["float"][0].size(), 4u);
}

TEST_F(CohereTest, TextsAreCutToTheRequestsTokens) {
  const auto expected = ByGrpc({"hello", "hello"});
  const auto floats = [](const HttpAnswer& answer) {
    EXPECT_EQ(answer.code, 200) << answer.body;
    return Json(answer)["embeddings"]["float"].get<std::vector<std::vector<float>>>();
  };
  EXPECT_EQ(floats(Embed(R"(,"max_tokens":3)")), expected)
      << "of hello world, with two special tokens";
  EXPECT_EQ(floats(Embed(R"(,"max_tokens":4)")), ByGrpc({"hello world", "hello"}));
  EXPECT_EQ(floats(Embed(R"(,"max_tokens":4096)")), ByGrpc({"hello world", "hello"}));
  EXPECT_EQ(floats(Embed(R"(,"max_tokens":3,"truncate":"START")")), ByGrpc({"world", "hello"}));
}

TEST_F(CohereTest, ErrorsHaveCoheresShape) {
  const auto check = [](const HttpAnswer& answer, int code, const char* message) {
    EXPECT_EQ(answer.code, code) << answer.body;
    ASSERT_TRUE(Json(answer).contains("message")) << answer.body;
    EXPECT_THAT(Json(answer)["message"].get<std::string>(), HasSubstr(message));
  };
  check(Embed(R"(,"embedding_types":["int4"])"), 400, "embedding_types must be");
  check(Embed(R"(,"embedding_types":["float","float"])"), 400, "twice");
  check(Embed(R"(,"embedding_types":[])"), 400, "at least one");
  check(Embed(R"(,"embedding_types":[1])"), 400, "embedding_types must be");
  check(Embed(R"(,"input_type":"image")"), 400, "input_type must be");
  check(Embed(R"(,"truncate":"MIDDLE")"), 400, "truncate must be START, END or NONE");
  check(Embed(R"(,"output_dimension":0)"), 400, "output_dimension is 0");
  check(Embed(R"(,"max_tokens":0)"), 400, "max_tokens is 0, the minimum is 1");
  check(Embed(R"(,"max_tokens":1)"), 400, "the special tokens alone are 2");
  check(Embed(R"(,"max_tokens":3,"truncate":"NONE")"), 400, "has 4 tokens, the limit is 3");
  check(Post(kPath, R"({"model":"tiny"})"), 400, "texts is missing");
  check(Post(kPath, R"({"model":"tiny","texts":"x"})"), 400, "texts must be an array of strings");
  check(Post(kPath, R"({"model":"nobody","texts":["x"]})"), 404, "nobody");
  check(Post(kPath, "nonsense"), 400, "not valid JSON");
}

}  // namespace
}  // namespace attendant
