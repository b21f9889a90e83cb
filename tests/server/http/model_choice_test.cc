// SPDX-License-Identifier: Apache-2.0
// The model of a request that names none, on a server with several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const json kTexts = {{"query", "hello"}, {"texts", {"hello", "world"}}};
const json kDocuments = {{"query", "hello"}, {"documents", {"hello", "world"}}};
const json kInputs = {{"inputs", "hello"}};

// Classifiers beside "tiny", which embeds: name -> labels.
using Classifiers = std::map<std::string, std::vector<std::string>>;

class ModelChoiceTest : public testing::Test {
 protected:
  // The answer of a server with these models beside "tiny".
  HttpAnswer Ask(const std::string& path, const json& request, const std::string& headers = "") {
    return HttpPost(server_->http_port(), path, request.dump(), headers);
  }
  json Answer(const std::string& path, const json& request, const std::string& headers = "") {
    const HttpAnswer answer = Ask(path, request, headers);
    EXPECT_EQ(answer.code, 200) << path << " " << answer.body;
    json parsed = json::parse(answer.body, nullptr, false);
    if (parsed.is_object()) parsed.erase("id");
    return parsed;
  }

  void Serve(const Classifiers& classifiers, const std::vector<std::string>& broken = {}) {
    InProcessServer::Options options{.broken_models = broken};
    options.flags.model_control = ModelControl::kExplicit;
    for (const auto& [name, labels] : classifiers) {
      WriteTinyClassifier(folder_ / name, labels);
      options.models.push_back({name, folder_ / name});
    }
    server_.emplace(options);
    server_->AwaitReady();
  }

  // That `path` chooses this model.
  void ExpectChosen(const std::string& name, const std::string& path, const json& request) {
    EXPECT_EQ(Answer(path, request), Answer(path, request, "X-Model: " + name + "\r\n")) << path;
  }

  TempDirectory folder_;
  std::optional<InProcessServer> server_;
};

TEST_F(ModelChoiceTest, APathThatOneModelAnswersMeansThatModel) {
  Serve({{"ranker", {"yes"}}});
  for (const char* path : {"/rerank", "/predict"}) {
    ExpectChosen("ranker", path, std::string(path) == "/rerank" ? kTexts : kInputs);
  }
  ExpectChosen("ranker", "/rerank", kDocuments);
  EXPECT_EQ(Answer("/rerank", kDocuments)["model"], "ranker");
  ExpectChosen("tiny", "/embed", kInputs);
  ExpectChosen("tiny", "/embed_all", kInputs);
  ExpectChosen("tiny", "/similarity",
               {{"inputs", {{"source_sentence", "hello"}, {"sentences", {"world"}}}}});
  ExpectChosen("tiny", "/embeddings", {{"input", "hello"}});
  ExpectChosen("tiny", "/v1/embeddings", {{"input", "hello"}});
}

TEST_F(ModelChoiceTest, APathOfEveryModelOrOfNoneAsksForTheName) {
  Serve({{"ranker", {"yes"}}});
  for (const char* path : {"/", "/tokenize"}) {
    const HttpAnswer answer = Ask(path, kInputs);
    EXPECT_EQ(answer.code, 400) << path;
    EXPECT_THAT(answer.body, HasSubstr("2 models, of which 2 may answer this: name one in the "
                                       "header x-model"));
  }
  EXPECT_EQ(HttpGet(server_->http_port(), "/info").code, 400);
  const HttpAnswer none = Ask("/embed_sparse", kInputs);
  EXPECT_EQ(none.code, 400);
  EXPECT_THAT(none.body, HasSubstr("of which 0 may answer this"));
}

TEST_F(ModelChoiceTest, TwoRerankersAreToldApartByName) {
  Serve({{"ranker", {"yes"}}, {"other", {"yes"}}});
  const HttpAnswer answer = Ask("/rerank", kDocuments);
  EXPECT_EQ(answer.code, 400);
  EXPECT_THAT(answer.body, AllOf(HasSubstr("3 models, of which 2"),
                                 HasSubstr("in the header x-model, or in the field model beside "
                                           "documents")));
  json named = kDocuments;
  named["model"] = "other";
  EXPECT_EQ(Answer("/rerank", named)["model"], "other");
  ExpectChosen("tiny", "/embed", kInputs);
}

TEST_F(ModelChoiceTest, AClassifierOfManyLabelsDoesNotRank) {
  Serve({{"ranker", {"yes"}}, {"colors", {"red", "green"}}});
  ExpectChosen("ranker", "/rerank", kTexts);
  EXPECT_EQ(Ask("/predict", kInputs).code, 400);
}

TEST_F(ModelChoiceTest, AnUnloadedModelIsNotMeant) {
  Serve({{"ranker", {"yes"}}, {"other", {"yes"}}});
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name("other");
  grpc::ClientContext context;
  inference::RepositoryModelUnloadResponse response;
  const auto stub = inference::GRPCInferenceService::NewStub(server_->NewChannel());
  ASSERT_TRUE(stub->RepositoryModelUnload(&context, request, &response).ok());
  ExpectChosen("ranker", "/rerank", kTexts);
}

// Nobody knows what it would do.
TEST_F(ModelChoiceTest, AModelThatDidNotLoadMayBeMeant) {
  Serve({}, {"other"});
  const HttpAnswer embed = Ask("/embed", kInputs);
  EXPECT_EQ(embed.code, 400);
  EXPECT_THAT(embed.body, HasSubstr("of which 2 may answer this"));
  const HttpAnswer rerank = Ask("/rerank", kTexts);
  EXPECT_EQ(rerank.code, 503);
  EXPECT_THAT(rerank.body, HasSubstr("'other'"));
}

}  // namespace
}  // namespace attendant
