// SPDX-License-Identifier: Apache-2.0
// The doors of classifiers and rerankers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kTexts = {"hello", "world", "hello world hello"};

// The tiny encoder with a classifier of these labels. `problem` is its type for transformers.
InProcessServer::Options WithLabels(const std::vector<std::string>& labels,
                                    const std::string& problem) {
  InProcessServer::Options options;
  options.write_model = [labels, problem](const std::string& folder) {
    WriteTinyClassifier(folder, labels);
    nlohmann::json config;
    std::ifstream(folder + "/config.json") >> config;
    config["problem_type"] = problem;
    std::ofstream(folder + "/config.json") << config;
  };
  return options;
}

class RerankTest : public DoorsTest {
 protected:
  // A model whose own scores have no activation: ranks have a sigmoid all the same.
  RerankTest() : DoorsTest(WithLabels({"yes"}, "regression")) {}

  nlohmann::json Ask(const std::string& path, nlohmann::json request) {
    const HttpAnswer answer = Post(path, request.dump());
    EXPECT_EQ(answer.code, 200) << answer.body;
    return Json(answer);
  }
};

TEST_F(RerankTest, TellsOfItself) {
  const nlohmann::json type = Json(Get("/info"))["model_type"];
  EXPECT_EQ(type,
            nlohmann::json::parse(R"({"reranker":{"id2label":{"0":"yes"},"label2id":{"yes":0}}})"));
}

TEST_F(RerankTest, TheBestTextComesFirst) {
  const nlohmann::json ranks = Ask("/rerank", {{"query", "hello"}, {"texts", kTexts}});
  ASSERT_EQ(ranks.size(), kTexts.size());
  std::set<size_t> indices;
  for (const nlohmann::json& rank : ranks) {
    indices.insert(rank["index"].get<size_t>());
    EXPECT_FALSE(rank.contains("text"));
  }
  EXPECT_EQ(indices.size(), kTexts.size());
  EXPECT_GT(ranks[0]["score"].get<float>(), ranks[1]["score"].get<float>());
  EXPECT_GT(ranks[1]["score"].get<float>(), ranks[2]["score"].get<float>());
}

TEST_F(RerankTest, TextsAndRawScoresOnDemand) {
  nlohmann::json request = {{"query", "hello"}, {"texts", kTexts}, {"return_text", true}};
  const nlohmann::json ranks = Ask("/rerank", request);
  request["raw_scores"] = true;
  const nlohmann::json raw = Ask("/rerank", request);
  for (size_t i = 0; i < kTexts.size(); ++i) {
    EXPECT_EQ(ranks[i]["text"], kTexts[ranks[i]["index"].get<size_t>()]);
    EXPECT_EQ(raw[i]["index"], ranks[i]["index"]);
    EXPECT_NEAR(1 / (1 + std::exp(-raw[i]["score"].get<double>())), ranks[i]["score"].get<double>(),
                1e-6);
  }
}

// Infinity's clients ask for logits by raw_scores, vLLM's by use_activation.
TEST_F(RerankTest, ScoresOfDocumentsAreRawOnDemand) {
  const nlohmann::json raw =
      Ask("/rerank", {{"query", "hello"}, {"texts", kTexts}, {"raw_scores", true}});
  nlohmann::json request = {{"model", "tiny"}, {"query", "hello"}, {"documents", kTexts}};
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank"}) {
    for (const auto& [field, value] : {std::pair{"raw_scores", true}, {"use_activation", false}}) {
      nlohmann::json asked = request;
      asked[field] = value;
      const nlohmann::json results = Ask(path, asked)["results"];
      asked[field] = !value;
      const nlohmann::json usual = Ask(path, asked)["results"];
      for (size_t i = 0; i < kTexts.size(); ++i) {
        EXPECT_EQ(results[i]["relevance_score"], raw[i]["score"]) << path << " " << field;
        EXPECT_NE(usual[i]["relevance_score"], raw[i]["score"]) << path << " " << field;
      }
    }
  }
}

TEST_F(RerankTest, FieldsSayHowLongDocumentsAreCut) {
  std::string text = "hello";
  for (int i = 0; i < 80; ++i) text += " world";
  const auto ask = [&](const std::string& path, const std::string& fields) {
    return Post(path,
                R"({"model":"tiny","query":"hello","documents":[")" + text + "\"]" + fields + "}");
  };
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank"}) {
    const auto score = [&](const std::string& fields) {
      return Json(ask(path, fields))["results"][0]["relevance_score"];
    };
    EXPECT_EQ(score(R"(,"truncate_prompt_tokens":-1,"truncation":true)"), score(""));
    EXPECT_NE(score(R"(,"truncation_side":"left")"), score(""));
    for (const char* refused : {R"(,"truncation":false)", R"(,"truncate_prompt_tokens":8)",
                                R"(,"rank_fields":["title","text"])"}) {
      EXPECT_EQ(ask(path, refused).code, 400) << path << refused;
    }
    EXPECT_EQ(score(R"(,"rank_fields":["text"])"), score(""));
  }
}

TEST_F(RerankTest, CohereGivesTheFirstOnes) {
  const nlohmann::json ranks = Ask("/rerank", {{"query", "hello"}, {"texts", kTexts}});
  const nlohmann::json answer = Ask("/v2/rerank", {{"model", "tiny"},
                                                   {"query", "hello"},
                                                   {"documents", kTexts},
                                                   {"top_n", 2},
                                                   {"return_documents", true}});
  ASSERT_EQ(answer["results"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const nlohmann::json& result = answer["results"][i];
    EXPECT_EQ(result["index"], ranks[i]["index"]);
    EXPECT_EQ(result["relevance_score"], ranks[i]["score"]);
    EXPECT_EQ(result["document"]["text"], kTexts[result["index"].get<size_t>()]);
  }
  const HttpAnswer none =
      Post("/v2/rerank", R"({"model":"tiny","query":"hello","documents":["x"],"top_n":0})");
  EXPECT_EQ(none.code, 400);
  EXPECT_THAT(none.body, HasSubstr("top_n is 0"));
}

// As Jina documents return_documents, and as vLLM always does.
TEST_F(RerankTest, JinasAnswerHasTheDocumentsUnlessTheyAreNotWanted) {
  nlohmann::json request = {{"model", "tiny"}, {"query", "hello"}, {"documents", kTexts}};
  const nlohmann::json answer = Ask("/v1/rerank", request);
  ASSERT_EQ(answer["results"].size(), kTexts.size());
  for (const nlohmann::json& result : answer["results"]) {
    EXPECT_EQ(result["document"]["text"], kTexts[result["index"].get<size_t>()]);
  }
  EXPECT_FALSE(Ask("/v2/rerank", request)["results"][0].contains("document"));
  request["return_documents"] = false;
  EXPECT_FALSE(Ask("/v1/rerank", request)["results"][0].contains("document"));
}

// As clients of vLLM and Infinity ask, and LiteLLM for both.
TEST_F(RerankTest, DocumentsInPlaceOfTextsHaveJinasAnswer) {
  nlohmann::json request = {
      {"model", "tiny"}, {"query", "hello"}, {"documents", kTexts}, {"top_n", 2}};
  nlohmann::json answer = Ask("/rerank", request), of_jina = Ask("/v1/rerank", request);
  answer.erase("id");
  of_jina.erase("id");
  EXPECT_EQ(answer["results"].size(), 2u);
  EXPECT_EQ(answer, of_jina);
  EXPECT_GT(answer["usage"]["prompt_tokens"], 0);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
  request.erase("model");
  EXPECT_EQ(Ask("/rerank", request)["results"], answer["results"]);
}

TEST_F(RerankTest, TheFieldModelCountsBesideDocumentsOnly) {
  nlohmann::json request = {{"model", "nobody"}, {"query", "hello"}, {"documents", kTexts}};
  EXPECT_EQ(Post("/rerank", request.dump()).code, 404);
  request["texts"] = kTexts;
  request.erase("documents");
  EXPECT_EQ(Post("/rerank", request.dump()).code, 200);
  EXPECT_EQ(Post("/rerank", request.dump(), "X-Model: nobody\r\n").code, 404);
}

// As a proxy pins a model, whatever its clients write.
TEST_F(RerankTest, TheHeadersModelGoesBeforeTheField) {
  nlohmann::json request = {{"model", "tiny"}, {"query", "hello"}, {"documents", kTexts}};
  EXPECT_EQ(Post("/rerank", request.dump(), "X-Model: nobody\r\n").code, 404);
  request["model"] = "nobody";
  EXPECT_EQ(Post("/rerank", request.dump(), "X-Model: tiny\r\n").code, 200);
}

// The default of vLLM.
TEST_F(RerankTest, JinasTopOfNoneIsAll) {
  const nlohmann::json request = {
      {"model", "tiny"}, {"query", "hello"}, {"documents", kTexts}, {"top_n", 0}};
  for (const char* path : {"/rerank", "/v1/rerank"}) {
    EXPECT_EQ(Ask(path, request)["results"].size(), kTexts.size());
  }
  const HttpAnswer less =
      Post("/v1/rerank", R"({"model":"tiny","query":"hello","documents":["x"],"top_n":-1})");
  EXPECT_EQ(less.code, 400);
  EXPECT_THAT(less.body, HasSubstr("top_n is -1, the minimum is 0"));
}

// Jina's clients read one field, Cohere's the other.
TEST_F(RerankTest, JinasErrorsAreThoseOfItsClients) {
  const HttpAnswer answer =
      Post("/v1/rerank", R"({"model":"nobody","query":"a","documents":["x"]})");
  EXPECT_EQ(answer.code, 404);
  EXPECT_EQ(Json(answer)["detail"], "there is no model 'nobody'");
  EXPECT_EQ(Json(answer)["message"], Json(answer)["detail"]);
}

TEST_F(RerankTest, CoheresDocumentsAreCutToTheRequestsTokens) {
  const auto score = [this](const std::string& document, int64_t max_tokens) {
    return Ask("/v2/rerank", {{"model", "tiny"},
                              {"query", "world world world"},
                              {"documents", nlohmann::json::array({document})},
                              {"max_tokens_per_doc", max_tokens}})["results"][0]["relevance_score"];
  };
  const nlohmann::json hello = score("hello", 100);
  EXPECT_EQ(score("hello world", 1), hello);
  EXPECT_NE(score("hello world", 2), hello);
  const HttpAnswer none = Post(
      "/v2/rerank", R"({"model":"tiny","query":"a","documents":["x"],"max_tokens_per_doc":0})");
  EXPECT_EQ(none.code, 400);
  EXPECT_THAT(none.body, HasSubstr("max_tokens_per_doc is 0"));
}

nlohmann::json Ranking(const std::vector<std::string>& texts) {
  nlohmann::json passages;
  for (const std::string& text : texts) passages.push_back({{"text", text}});
  return {{"model", "tiny"}, {"query", {{"text", "hello"}}}, {"passages", passages}};
}

TEST_F(RerankTest, NimRanksPassagesByTheirLogits) {
  const nlohmann::json raw =
      Ask("/rerank", {{"query", "hello"}, {"texts", kTexts}, {"raw_scores", true}});
  const nlohmann::json answer = Ask("/v1/ranking", Ranking(kTexts));
  const nlohmann::json& ranks = answer["rankings"];
  ASSERT_EQ(ranks.size(), kTexts.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_EQ(ranks[i], (nlohmann::json{{"index", raw[i]["index"]}, {"logit", raw[i]["score"]}}));
  }
  EXPECT_GT(answer["usage"]["prompt_tokens"], 0);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
}

TEST_F(RerankTest, NimCutsLongPassagesOnRequest) {
  std::string text;
  for (int i = 0; i < 80; ++i) text += "hello ";
  nlohmann::json request = Ranking({text});
  const HttpAnswer refused = Post("/v1/ranking", request.dump());
  EXPECT_EQ(refused.code, 400);
  EXPECT_THAT(Json(refused)["message"].get<std::string>(), HasSubstr("tokens, the limit is"));
  request["truncate"] = "END";
  EXPECT_EQ(Post("/v1/ranking", request.dump()).code, 200);
  request["truncate"] = "MIDDLE";
  EXPECT_THAT(Post("/v1/ranking", request.dump()).body, HasSubstr("must be START, END or NONE"));
}

TEST_F(RerankTest, NimNamesTheFieldAtFault) {
  const std::pair<const char*, const char*> cases[] = {
      {"query", "query is missing"}, {"passages", "passages is missing"}, {"model", "model is"}};
  for (const auto& [field, message] : cases) {
    nlohmann::json request = Ranking(kTexts);
    request.erase(field);
    const HttpAnswer answer = Post("/v1/ranking", request.dump());
    EXPECT_EQ(answer.code, 400);
    EXPECT_THAT(answer.body, HasSubstr(message));
  }
  nlohmann::json request = Ranking(kTexts);
  request["query"] = nlohmann::json::object();
  EXPECT_THAT(Post("/v1/ranking", request.dump()).body, HasSubstr("query.text is missing"));
}

class PredictTest : public DoorsTest {
 protected:
  PredictTest() : DoorsTest(WithLabels({"red", "green", "blue"}, "single_label_classification")) {}

  // Of one text: the best label first.
  static void ExpectPredictions(const nlohmann::json& predictions) {
    ASSERT_EQ(predictions.size(), 3u);
    std::set<std::string> labels;
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) {
      labels.insert(predictions[i]["label"].get<std::string>());
      sum += predictions[i]["score"].get<double>();
      if (i == 0) continue;
      EXPECT_LT(predictions[i]["score"].get<float>(), predictions[i - 1]["score"].get<float>());
    }
    EXPECT_EQ(labels, (std::set<std::string>{"red", "green", "blue"}));
    EXPECT_NEAR(sum, 1, 1e-6);
  }
};

TEST_F(PredictTest, OneTextOrMany) {
  const nlohmann::json one = Json(Post("/predict", R"({"inputs":"hello"})"));
  ExpectPredictions(one);
  const nlohmann::json many =
      Json(Post("/predict", R"({"inputs":[["hello"],["hello","world"],["world"]]})"));
  ASSERT_EQ(many.size(), 3u);
  for (const nlohmann::json& predictions : many) ExpectPredictions(predictions);
  EXPECT_EQ(many[0], one);
  EXPECT_NE(many[1], one);
  EXPECT_EQ(Json(Post("/predict", R"({"inputs":["hello","world"]})")), many[1]) << "a pair";
}

TEST_F(PredictTest, RefusesWhatIsNoTextAndNoPair) {
  for (const char* body :
       {R"({"inputs":["a","b","c"]})", R"({"inputs":[[]]})", R"({"inputs":[["a"],1]})", "[]"}) {
    EXPECT_EQ(Post("/predict", body).code, 400) << body;
  }
  EXPECT_THAT(Post("/predict", "[]").body, HasSubstr("must be a JSON object"));
}

// A model with vectors of tokens scores pairs, but has no labels.
class LateRerankTest : public DoorsTest {
 protected:
  LateRerankTest() : DoorsTest({.models = {{"colbert", "tests/golden/colbert/stanford_bert"}}}) {}
};

TEST_F(LateRerankTest, PredictsNothing) {
  const std::string header = "X-Model: colbert\r\n";
  for (const char* inputs :
       {R"(["how tall?","it rains"])", R"([["how tall?","it rains"]])", R"("it rains")"}) {
    const HttpAnswer answer = Post("/predict", absl::StrCat("{\"inputs\":", inputs, "}"), header);
    EXPECT_EQ(answer.code, 400) << inputs;
    EXPECT_THAT(answer.body, HasSubstr("'colbert' is no classifier")) << inputs;
  }
  EXPECT_EQ(Post("/", R"({"inputs":["how tall?","it rains"]})", header).code, 200) << "as /embed";
  EXPECT_EQ(Post("/rerank", R"({"query":"a","texts":["it rains"]})", header).code, 200);
}

}  // namespace
}  // namespace attendant
