// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/http/doors/cosine.h"
#include "server/http/doors/tei/parts.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using testing::HasSubstr;
using Rows = std::vector<std::vector<float>>;

class TeiTest : public DoorsTest {
 protected:
  nlohmann::json Ask(const std::string& path, const std::string& body) {
    const HttpAnswer answer = Post(path, body);
    EXPECT_EQ(answer.code, 200) << answer.body;
    return Json(answer);
  }
};

TEST_F(TeiTest, EmbedsAsGrpcDoes) {
  const Rows expected = ByGrpc({"hello world", "hello"});
  EXPECT_EQ(Ask("/embed", R"({"inputs":["hello world","hello"]})").get<Rows>(), expected);
  EXPECT_EQ(Ask("/embed", R"({"inputs":[2,4,5,3]})").get<Rows>(), Rows{expected[0]});
  EXPECT_EQ(Ask("/embed", R"({"inputs":"hello","dimensions":3})")[0].size(), 3u);
  const Rows raw = Ask("/embed", R"({"inputs":"hello","normalize":false})").get<Rows>();
  EXPECT_NE(raw[0], expected[1]);
}

TEST_F(TeiTest, EmbedsEachToken) {
  const nlohmann::json all = Ask("/embed_all", R"({"inputs":["hello world","hello"]})");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].size(), 4u);
  EXPECT_EQ(all[1].size(), 3u);
  const Rows states = all[1].get<Rows>();
  const Rows pooled = Ask("/embed", R"({"inputs":"hello","normalize":false})").get<Rows>();
  for (size_t i = 0; i < pooled[0].size(); ++i) {
    EXPECT_NEAR((states[0][i] + states[1][i] + states[2][i]) / 3, pooled[0][i], 1e-6);
  }
}

TEST_F(TeiTest, ComparesSentences) {
  const auto values = Ask("/similarity", R"({"inputs":{"source_sentence":"hello",
      "sentences":["hello","world"]}})")
                          .get<std::vector<float>>();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_NEAR(values[0], 1, 1e-6);
  EXPECT_LT(values[1], 1);
}

TEST(CosineTest, IsNeverBeyondOne) {
  const std::vector<float> a = {std::nextafter(1.0f, 2.0f)}, b = {-a[0]};
  EXPECT_EQ(CosineOfNormalized(a, a), 1.0f);
  EXPECT_EQ(CosineOfNormalized(a, b), -1.0f);
  EXPECT_EQ(CosineOfNormalized(std::vector<float>{0.5f, 0.5f}, std::vector<float>{1, 0}), 0.5f);
}

TEST_F(TeiTest, SentencesAreCutAsTheParametersSay) {
  std::string hellos, worlds;
  for (int i = 0; i < 40; ++i) {
    hellos += "hello ";
    worlds += "world ";
  }
  const auto similarity = [&](const std::string& direction) {
    return Ask("/similarity", absl::StrCat(R"({"inputs":{"source_sentence":"hello","sentences":[")",
                                           hellos, worlds, R"("]},"parameters":{"truncate":true,)",
                                           R"("truncation_direction":")", direction, "\"}}"))[0]
        .get<float>();
  };
  EXPECT_NE(similarity("left"), similarity("right"));
}

TEST_F(TeiTest, TheRootOfAModelThatEmbeds) {
  EXPECT_EQ(Ask("/", R"({"inputs":["hello world","hello"]})").get<Rows>(),
            ByGrpc({"hello world", "hello"}));
  const std::string compared =
      R"({"inputs":{"source_sentence":"hello","sentences":["hello","world"]}})";
  EXPECT_EQ(Ask("/", compared), Ask("/similarity", compared));
  EXPECT_EQ(server_.Metric(R"(attendant_requests_total{code="OK",method="tei_root",model="tiny"})"),
            2);
  EXPECT_THAT(Get("/").head, HasSubstr("Content-Type: text/html")) << "the console";
}

TEST_F(TeiTest, Tokenizes) {
  const nlohmann::json all = Ask("/tokenize", R"({"inputs":"hello world"})");
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].size(), 4u);
  EXPECT_EQ(all[0][0]["id"], kCls);
  EXPECT_EQ(all[0][0]["special"], true);
  EXPECT_EQ(all[0][1]["text"], "hello");
  EXPECT_EQ(all[0][1]["special"], false);
  EXPECT_EQ(all[0][3]["id"], kSep);
  EXPECT_EQ(all[0][3]["special"], true);
  const nlohmann::json own =
      Ask("/tokenize", R"({"inputs":["hello world",""],"add_special_tokens":false})");
  EXPECT_EQ(own[0].size(), 2u);
  EXPECT_EQ(own[1].size(), 0u);
  const nlohmann::json odd = Ask("/tokenize", R"({"inputs":"hello Wörld"})");
  EXPECT_EQ(odd[0][0]["text"], "[CLS]");
  EXPECT_EQ(odd[0][2]["text"], "Wörld") << "the text's own bytes, whatever the token";
  EXPECT_EQ(odd[0][2]["stop"], 12);
}

TEST_F(TeiTest, TellsOfItself) {
  const nlohmann::json info = Json(Get("/info"));
  EXPECT_EQ(info["model_id"], "tiny");
  EXPECT_EQ(info["model_type"]["embedding"]["pooling"], "mean");
  EXPECT_EQ(info["max_input_length"], kTinyMaxTextTokens);
  EXPECT_EQ(info["auto_truncate"], true);
}

TEST_F(TeiTest, HealthHasNoBody) {
  for (const char* path : {"/health", "/ping"}) {
    const HttpAnswer answer = Get(path);
    EXPECT_EQ(answer.code, 200) << path;
    EXPECT_EQ(answer.body, "") << path;
  }
}

TEST_F(TeiTest, EmbeddingsOfOpenAisShapeHaveAPathOfTeis) {
  const HttpAnswer answer = Post("/embeddings", R"({"input":"hello"})");
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.body, Post("/v1/embeddings", R"({"input":"hello"})").body);
}

TEST(TeiInfoTest, TellsEachLimit) {
  InProcessServer server(InProcessServer::WithDistinctLimits());
  server.AwaitReady();
  const nlohmann::json info = nlohmann::json::parse(HttpGet(server.http_port(), "/info").body);
  EXPECT_EQ(info["max_batch_tokens"], 2000);
  EXPECT_EQ(info["max_batch_requests"], 70);
  EXPECT_EQ(info["max_concurrent_requests"], 300);
  EXPECT_EQ(info["max_client_batch_size"], 60);
}

TEST(TeiErrorTest, TypesFollowTheCode) {
  const std::pair<int, const char*> cases[] = {{400, "Validation"}, {404, "Validation"},
                                               {429, "Overloaded"}, {503, "Unhealthy"},
                                               {500, "Backend"},    {504, "Backend"}};
  for (const auto& [code, type] : cases) {
    const HttpResponse response = TeiError({.code = code, .status = absl::UnknownError("why")});
    EXPECT_EQ(response.code, code);
    EXPECT_EQ(response.body, absl::StrCat(R"({"error":"why","error_type":")", type, "\"}"));
  }
}

TEST_F(TeiTest, AHeaderNamesTheModel) {
  EXPECT_EQ(Post("/embed", R"({"inputs":"hello"})", "X-Model: tiny\r\n").code, 200);
  EXPECT_EQ(Post("/embed", R"({"inputs":"hello"})", "X-Model: nobody\r\n").code, 404);
}

TEST_F(TeiTest, ErrorsHaveTeisShape) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "hello ";
  struct Case {
    std::string path, body, message;
  };
  for (const Case& c : {
           Case{"/embed", "{", "not valid JSON"},
           Case{"/embed", "{}", "inputs is missing"},
           Case{"/embed", R"({"inputs":[]})", "inputs is empty"},
           Case{"/embed", absl::StrCat(R"({"truncate":false,"inputs":")", text, "\"}"), "32"},
           Case{"/embed", R"({"inputs":"x","truncate":1})", "truncate must be a boolean"},
           Case{"/embed", R"({"inputs":"x","truncation_direction":"both"})",
                "must be left or right"},
           Case{"/embed", R"({"inputs":"x","prompt_name":"query"})", "prompt_name"},
           Case{"/embed", R"({"inputs":"x","normalize":"yes"})", "normalize must be a boolean"},
           Case{"/embed", R"({"inputs":"x","dimensions":-3})", "dimensions is -3"},
           Case{"/embed_all", R"({"inputs":true})", "inputs must be"},
           Case{"/similarity", R"({"inputs":"x"})", "inputs must be an object"},
           Case{"/similarity", R"({"inputs":{"sentences":["x"]}})", "source_sentence is missing"},
           Case{"/similarity", R"({"inputs":{"source_sentence":"x","sentences":[1]}})", "a string"},
           Case{"/", R"({"query":"x","texts":["x"]})", "inputs is missing"},
           Case{"/", R"({"inputs":{"sentences":["x"]}})", "source_sentence is missing"},
           Case{"/tokenize", R"({"inputs":[1]})", "inputs must be a string"},
       }) {
    const HttpAnswer answer = Post(c.path, c.body);
    const nlohmann::json json = Json(answer);
    EXPECT_EQ(answer.code, 400) << c.body;
    ASSERT_TRUE(json.contains("error_type")) << answer.body;
    EXPECT_EQ(json["error_type"], "Validation");
    EXPECT_THAT(json["error"].get<std::string>(), HasSubstr(c.message)) << c.body;
  }
}

// As TEI does today. Many clients leave the field out.
TEST_F(TeiTest, LongTextsAreCutUnlessTheRequestSaysNo) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "hello ";
  const auto code = [&](const char* path, const std::string& body) {
    return Post(path, absl::StrReplaceAll(body, {{"LONG", text}})).code;
  };
  EXPECT_EQ(code("/embed", R"({"inputs":"LONG"})"), 200);
  EXPECT_EQ(code("/embed", R"({"inputs":"LONG","truncate":null})"), 200);
  EXPECT_EQ(code("/embed", R"({"inputs":"LONG","truncate":true})"), 200);
  EXPECT_EQ(code("/embed_all", R"({"inputs":"LONG"})"), 200);
  EXPECT_EQ(code("/embeddings", R"({"input":"LONG"})"), 200);
  const std::string similarity = R"({"inputs":{"source_sentence":"x","sentences":["LONG"]})";
  EXPECT_EQ(code("/similarity", similarity + "}"), 200);
  EXPECT_EQ(code("/similarity", similarity + R"(,"parameters":{}})"), 200);
  EXPECT_EQ(code("/similarity", similarity + R"(,"parameters":{"truncate":false}})"), 400);
}

}  // namespace
}  // namespace attendant
