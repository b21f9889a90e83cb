// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::vector<std::string> kTexts = {"hello", "world", "hello world hello"};

class VllmTest : public DoorsTest {
 protected:
  using DoorsTest::DoorsTest;

  json Ask(const std::string& path, const json& request) {
    const HttpAnswer answer = Post(path, request.dump());
    EXPECT_EQ(answer.code, 200) << answer.body;
    return Json(answer);
  }
  void ExpectRefused(const std::string& path, const json& request, const std::string& message) {
    const HttpAnswer answer = Post(path, request.dump());
    EXPECT_EQ(answer.code, 400) << request;
    ASSERT_TRUE(Json(answer).contains("error")) << answer.body;
    EXPECT_THAT(Json(answer)["error"]["message"].get<std::string>(), HasSubstr(message));
  }
  // The values under `field` of the answer's list.
  static json ValuesOf(const json& answer, const char* field) {
    json values = json::array();
    for (const json& element : answer["data"]) values.push_back(element[field]);
    return values;
  }
};

InProcessServer::Options WithLabels(const std::vector<std::string>& labels) {
  return {
      .write_model = [labels](const std::string& folder) { WriteTinyClassifier(folder, labels); }};
}

json Without(json request, const char* field) {
  request.erase(field);
  return request;
}
json With(json request, const char* field, json value) {
  request[field] = std::move(value);
  return request;
}

class VllmRerankerTest : public VllmTest {
 protected:
  VllmRerankerTest() : VllmTest(WithLabels({"yes"})) {}

  // The scores of /rerank, in the order of the texts.
  std::vector<float> Ranks(const std::string& query, bool raw = false) {
    std::vector<float> scores(kTexts.size());
    for (const json& rank :
         Ask("/rerank", {{"query", query}, {"texts", kTexts}, {"raw_scores", raw}})) {
      scores[rank["index"].get<size_t>()] = rank["score"].get<float>();
    }
    return scores;
  }

  const json request_ = {{"model", "tiny"}, {"text_1", "hello"}, {"text_2", kTexts}};
};

TEST_F(VllmRerankerTest, ScoresAreInTheOrderOfTheTexts) {
  for (const char* path : {"/score", "/v1/score"}) {
    const json answer = Ask(path, request_);
    EXPECT_EQ(ValuesOf(answer, "score").get<std::vector<float>>(), Ranks("hello"));
    EXPECT_EQ(ValuesOf(answer, "index"), json({0, 1, 2}));
    EXPECT_EQ(answer["data"][0]["object"], "score");
    EXPECT_EQ(answer["object"], "list");
    EXPECT_EQ(answer["model"], "tiny");
    EXPECT_NE(answer["id"], "");
    EXPECT_GT(answer["created"], 1'700'000'000);
    EXPECT_GT(answer["usage"]["prompt_tokens"], 0);
    EXPECT_EQ(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
  }
  EXPECT_EQ(
      server_.Metric(R"(attendant_requests_total{code="OK",method="vllm_score",model="tiny"})"), 2);
}

TEST_F(VllmRerankerTest, ListsHaveEachOfVllmsNames) {
  const json expected = Ask("/score", request_)["data"];
  for (const auto& [first, second] :
       {std::pair("queries", "documents"), std::pair("queries", "items"),
        std::pair("data_1", "data_2")}) {
    EXPECT_EQ(Ask("/score", {{first, "hello"}, {second, kTexts}})["data"], expected) << second;
  }
}

TEST_F(VllmRerankerTest, AsManyQueriesAsTextsArePairs) {
  const json scores = ValuesOf(Ask("/score", With(request_, "text_1", kTexts)), "score");
  for (size_t i = 0; i < kTexts.size(); ++i) {
    EXPECT_EQ(scores[i].get<float>(), Ranks(kTexts[i])[i]) << i;
  }
  const json one = Ask("/score", {{"text_1", "hello"}, {"text_2", "world"}});
  EXPECT_EQ(ValuesOf(one, "score").get<std::vector<float>>(),
            std::vector<float>{Ranks("hello")[1]});
}

TEST_F(VllmRerankerTest, WithoutActivationScoresAreLogits) {
  const json scores = ValuesOf(Ask("/score", With(request_, "use_activation", false)), "score");
  EXPECT_EQ(scores.get<std::vector<float>>(), Ranks("hello", /*raw=*/true));
}

TEST_F(VllmRerankerTest, LongTextsAreCutOnRequestOnly) {
  std::string text;
  for (int i = 0; i < 80; ++i) text += i < 40 ? "hello " : "world ";
  const json request = With(request_, "text_2", text);
  ExpectRefused("/score", request, "tokens, the limit is");
  const json cut = With(request, "truncate_prompt_tokens", -1);
  const json right = Ask("/score", cut)["data"];
  EXPECT_NE(Ask("/score", With(cut, "truncation_side", "left"))["data"], right);
  ExpectRefused("/score", With(cut, "truncate_prompt_tokens", 8), "must be -1");
  ExpectRefused("/score", With(cut, "truncation_side", "middle"), "must be left or right");
}

TEST_F(VllmRerankerTest, DocumentsAreCutToTheRequestsTokens) {
  const json whole = With(request_, "text_2", "hello world");
  EXPECT_EQ(Ask("/score", With(whole, "max_tokens_per_doc", 1))["data"],
            Ask("/score", With(request_, "text_2", "hello"))["data"]);
  EXPECT_EQ(Ask("/score", With(whole, "max_tokens_per_doc", 0))["data"],
            Ask("/score", whole)["data"]);
}

TEST_F(VllmRerankerTest, NamesTheFieldAtFault) {
  ExpectRefused("/score", Without(request_, "text_1"), "text_1 is missing");
  ExpectRefused("/score", Without(request_, "text_2"), "text_2 is missing");
  ExpectRefused("/score", {{"model", "tiny"}}, "text_1 is missing");
  ExpectRefused("/score", {{"queries", "a"}}, "documents is missing");
  ExpectRefused("/score", With(request_, "text_2", json::array()), "text_2 is empty");
  ExpectRefused("/score", With(request_, "text_2", {"a", 1}), "text_2[1] must be a string");
  ExpectRefused("/score", With(request_, "text_1", {"a", "b"}),
                "text_1 has 2 texts and text_2 has 3: text_1 must have one, or as many");
  ExpectRefused("/score", With(request_, "text_1", std::string(2 << 20, 'a')), "for 3 texts");
  ExpectRefused("/score", With(request_, "max_tokens_per_query", 5), "max_tokens_per_query must");
  EXPECT_EQ(Post("/score", With(request_, "model", "nobody").dump()).code, 404);
}

TEST_F(VllmRerankerTest, PoolingGivesTheScoreOfAText) {
  const json answer = Ask("/pooling", {{"model", "tiny"}, {"input", kTexts}});
  const json predicted = Ask("/predict", {{"inputs", "world"}});
  ASSERT_EQ(answer["data"].size(), kTexts.size());
  EXPECT_EQ(answer["data"][1]["data"], json::array({predicted[0]["score"]}));
}

class VllmClassifierTest : public VllmTest {
 protected:
  VllmClassifierTest() : VllmTest(WithLabels({"red", "green", "blue"})) {}
};

TEST_F(VllmClassifierTest, PoolingGivesTheScoresOfAllLabels) {
  const json request = {{"model", "tiny"}, {"input", "hello"}};
  const std::vector<double> scores = Ask("/pooling", request)["data"][0]["data"];
  const std::vector<double> logits =
      Ask("/pooling", With(request, "use_activation", false))["data"][0]["data"];
  ASSERT_EQ(scores.size(), 3u);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(scores[i], std::exp(logits[i]) / sum, 1e-6);
  EXPECT_EQ(Ask("/pooling", With(request, "task", "classify"))["data"][0]["data"], scores);
  ExpectRefused("/pooling", With(request, "task", "embed"), "task must be classify for model");
}

TEST_F(VllmClassifierTest, ScoresNeedOneLabel) {
  ExpectRefused("/score", {{"text_1", "hello"}, {"text_2", "world"}}, "it has 3 labels, not 1");
}

TEST_F(VllmTest, PoolingGivesEmbeddings) {
  const json request = {{"model", "tiny"}, {"input", {"hello world", "hello"}}};
  const json answer = Ask("/pooling", request);
  EXPECT_EQ(ValuesOf(answer, "data").get<std::vector<std::vector<float>>>(),
            ByGrpc({"hello world", "hello"}));
  EXPECT_EQ(ValuesOf(answer, "index"), json({0, 1}));
  EXPECT_EQ(answer["data"][0]["object"], "pooling");
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["usage"],
            json({{"prompt_tokens", 7}, {"total_tokens", 7}, {"completion_tokens", 0}}));
  const json raw = Ask("/embed", {{"inputs", "hello"}, {"normalize", false}});
  EXPECT_EQ(Ask("/pooling", With(request, "use_activation", false))["data"][1]["data"], raw[0]);
  EXPECT_EQ(Ask("/pooling", With(request, "input", {2, 4, 3}))["data"][0]["data"],
            answer["data"][1]["data"]);
}

TEST_F(VllmTest, PoolingInBase64) {
  const std::string text = Ask("/pooling", {{"input", "hello"},
                                            {"encoding_format", "base64"},
                                            {"add_special_tokens", true},
                                            {"endianness", "little"}})["data"][0]["data"];
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(text, &bytes));
  const std::vector<float> expected = ByGrpc({"hello"})[0];
  ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
}

TEST_F(VllmTest, PoolingRefusesByName) {
  const json request = {{"model", "tiny"}, {"input", "hello"}};
  const std::pair<const char*, json> cases[] = {{"encoding_format", "bytes"},
                                                {"task", "plugin"},
                                                {"task", "token_embed"},
                                                {"embed_dtype", "float16"},
                                                {"dimensions", 4},
                                                {"messages", json::array()},
                                                {"normalize", false},
                                                {"endianness", "big"},
                                                {"embedding_type", "int8"},
                                                {"add_special_tokens", false},
                                                {"truncate_prompt_tokens", 3}};
  for (const auto& [field, value] : cases) {
    ExpectRefused("/pooling", With(request, field, value), std::string(field) + " must be");
  }
  ExpectRefused("/pooling", Without(request, "input"), "input is missing");
}

// As embedding models score in vLLM.
TEST_F(VllmTest, EmbeddingsAreScoredByTheirCosines) {
  const json similar =
      Ask("/similarity", {{"inputs", {{"source_sentence", "hello"}, {"sentences", kTexts}}}});
  const json answer = Ask("/score", {{"text_1", "hello"}, {"text_2", kTexts}});
  EXPECT_EQ(ValuesOf(answer, "score"), similar);
  ExpectRefused("/score", {{"text_1", "a"}, {"text_2", "b"}, {"max_tokens_per_doc", 4}},
                "max_tokens_per_doc must be 0");
  Ask("/score", {{"text_1", std::string(2 << 20, 'a')}, {"text_2", kTexts}});  // read only once
  const json own = Ask("/score", {{"text_1", kTexts}, {"text_2", kTexts}});
  for (const json& score : ValuesOf(own, "score")) EXPECT_NEAR(score.get<double>(), 1, 1e-6);
}

// Heads on tokens, as the golden models have them.
class VllmHeadsTest : public VllmTest {
 protected:
  VllmHeadsTest()
      : VllmTest({.models = {{"colbert", "tests/golden/colbert/stanford_bert"},
                             {"labels", "tests/golden/tokens/bert_tokens"},
                             {"m3", "tests/golden/tokens/bge_m3"},
                             {"splade", "tests/golden/tokens/bert_splade"}}}) {}

  json Rows(const char* model, const json& more = json::object()) {
    json request = {{"model", model}, {"input", "it rains"}};
    request.update(more);
    return Ask("/pooling", request)["data"][0]["data"];
  }
};

TEST_F(VllmHeadsTest, PoolingGivesARowForEachToken) {
  const json labels = Rows("labels"), logits = Rows("labels", {{"use_activation", false}});
  ASSERT_EQ(labels.size(), logits.size());
  ASSERT_GT(labels.size(), 2u);
  EXPECT_NE(labels, logits);
  for (const json& row : labels) {
    double sum = 0;
    for (const json& score : row) sum += score.get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  for (const char* model : {"colbert", "m3"}) {
    for (const json& row : Rows(model, {{"task", "token_embed"}})) {
      double squares = 0;
      for (const json& value : row) squares += std::pow(value.get<double>(), 2);
      EXPECT_NEAR(squares, 1, 1e-4) << model;
    }
  }
}

TEST_F(VllmHeadsTest, PoolingWithoutATaskGivesWhatTheModelIsFor) {
  EXPECT_EQ(Rows("colbert"), Rows("colbert", {{"task", "token_embed"}}));
  EXPECT_EQ(Rows("m3"), Rows("m3", {{"task", "embed"}}));
  EXPECT_TRUE(Rows("m3")[0].is_number());
  EXPECT_TRUE(Rows("m3", {{"use_activation", false}})[0].is_number());
  ExpectRefused("/pooling", {{"model", "colbert"}, {"input", "a"}, {"use_activation", false}},
                "use_activation must be true for token_embed");
  ExpectRefused("/pooling", {{"model", "splade"}, {"input", "a"}}, "POST /embed_sparse");
  ExpectRefused("/pooling", {{"model", "splade"}, {"input", "a"}, {"task", "embed"}},
                "task must be absent");
}

TEST_F(VllmHeadsTest, VectorsOfTokensAreCompared) {
  const json ranks = Json(
      Post("/rerank", R"({"query":"how tall?","texts":["it rains"]})", "X-Model: colbert\r\n"));
  const json answer = Ask("/score", {{"model", "colbert"},
                                     {"text_1", "how tall?"},
                                     {"text_2", "it rains"},
                                     {"truncate_prompt_tokens", -1}});
  EXPECT_EQ(answer["data"][0]["score"], ranks[0]["score"]);
}

TEST_F(VllmHeadsTest, DocumentsWithVectorsOfTokensAreCutToTheRequestsTokens) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "it rains ";
  for (const char* model : {"colbert", "m3"}) {
    const json request = {{"model", model}, {"text_1", "how tall?"}, {"text_2", text}};
    const json ranks = Ask("/v2/rerank", {{"model", model},
                                          {"query", "how tall?"},
                                          {"documents", {text}},
                                          {"max_tokens_per_doc", 3}});
    const json cut = Ask("/score", With(request, "max_tokens_per_doc", 3));
    EXPECT_EQ(cut["data"][0]["score"], ranks["results"][0]["relevance_score"]) << model;
    ExpectRefused("/score", With(request, "max_tokens_per_doc", 100'000), "tokens, the limit is");
    ExpectRefused("/score", With(With(request, "text_1", text), "max_tokens_per_doc", 3),
                  "tokens, the limit is");
  }
}

}  // namespace
}  // namespace attendant
