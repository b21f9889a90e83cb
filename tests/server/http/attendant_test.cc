// SPDX-License-Identifier: Apache-2.0
// attendant.v1 as JSON over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/http/attendant/json_request.h"
#include "server/http/gzip.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

constexpr char kEncode[] = "/attendant.v1.Encoder/Encode";
constexpr char kAttend[] = "/attendant.v1.Attention/Attend";

std::vector<float> Values(const nlohmann::json& tensor) {
  std::string bytes;
  EXPECT_EQ(tensor["dtype"], "DTYPE_F32");
  EXPECT_TRUE(absl::Base64Unescape(tensor["data"].get<std::string>(), &bytes));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string Base64(const std::vector<float>& values) {
  return absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                              values.size() * sizeof(float)));
}

class AttendantJsonTest : public DoorsTest {
 protected:
  nlohmann::json Ask(const std::string& path, const std::string& body,
                     const std::string& headers = "") {
    const HttpAnswer answer = Post(path, body, headers);
    EXPECT_EQ(answer.code, 200) << answer.body;
    EXPECT_THAT(answer.head, HasSubstr("Content-Type: application/json\r\n"));
    return Json(answer);
  }
  void Refuses(const std::string& path, const std::string& body, const std::string& message) {
    const HttpAnswer answer = Post(path, body);
    EXPECT_EQ(answer.code, 400) << body;
    const nlohmann::json json = Json(answer);
    EXPECT_EQ(json["code"], "invalid_argument") << answer.body;
    EXPECT_THAT(json["message"].get<std::string>(), HasSubstr(message)) << body;
  }
};

TEST_F(AttendantJsonTest, EncodesAsGrpcDoes) {
  const std::vector<std::vector<float>> expected = ByGrpc({"hello world"});
  const nlohmann::json answer = Ask(kEncode, R"({"model":"tiny","id":"a",
      "sequences":{"sequences":[{"text":"hello world"}]}})");
  EXPECT_EQ(Values(answer["pooled"]), expected[0]);
  EXPECT_EQ(answer["pooled"]["shape"], (std::vector<size_t>{1, expected[0].size()}));
  EXPECT_EQ(answer["id"], "a");
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["sequences"][0]["tokens"], 4);
  EXPECT_TRUE(answer["timings"]["total_us"].is_number_integer());
  const nlohmann::json ids = Ask(kEncode, R"({"model":"tiny","modelVersion":"1","priority":"-5",
      "outputs":{"pooled":{"pooling":"POOLING_MEAN","dims":null}},"truncation":2,
      "sequences":{"sequences":[{"ids":{"tokenIds":[2,4,5,3],"attention_mask":[true,true,true,true]}}]}})");
  EXPECT_EQ(Values(ids["pooled"]), expected[0]);
  EXPECT_EQ(
      server_.Metric(R"(attendant_requests_total{code="OK",method="http_encode",model="tiny"})"),
      2);
}

TEST_F(AttendantJsonTest, TakesWholeNumbersInEveryForm) {
  const nlohmann::json answer = Ask(kEncode, R"({"model":"tiny","truncation":2.0,
      "outputs":{"token_ids":true,"pooled":{}},
      "sequences":{"sequences":[{"ids":{"token_ids":[2.0,"4.0",5e0,"3"]}}]}})");
  EXPECT_EQ(answer["sequences"][0]["token_ids"], (std::vector<int>{2, 4, 5, 3}));
  for (const char* number : {"1.5", "\"1.5\"", "9223372036854775808", "-1e19", "\"nan\"", "\"\""}) {
    Refuses(kAttend, absl::StrCat(R"({"local":{"window":)", number, "}}"),
            "local.window must be an integer");
  }
}

TEST_F(AttendantJsonTest, GivesAttentionWeightsAndTokens) {
  const nlohmann::json answer = Ask(kEncode, R"({"model":"tiny","outputs":{"token_strings":true,
      "token_ids":true,"attention_weights":{"heads":[1]}},
      "sequences":{"sequences":[{"text":"hello world"}]}})");
  EXPECT_EQ(answer["sequences"][0]["token_strings"].size(), 4u);
  EXPECT_EQ(answer["sequences"][0]["token_ids"][0], kCls);
  const nlohmann::json& weights = answer["attention_weights"][0];
  EXPECT_EQ(weights["shape"][1], 1);
  const std::vector<float> values = Values(weights);
  EXPECT_NEAR(values[0] + values[1] + values[2] + values[3], 1, 1e-5);
}

TEST_F(AttendantJsonTest, ListsModels) {
  const nlohmann::json models = Ask("/attendant.v1.Encoder/ListModels", "{}")["models"];
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0]["name"], "tiny");
  EXPECT_EQ(models[0]["state"], "MODEL_STATE_READY");
  EXPECT_EQ(models[0]["max_text_tokens"], kTinyMaxTextTokens);
}

TEST_F(AttendantJsonTest, Attends) {
  const std::string body = absl::StrCat(
      R"({"query":{"dtype":"DTYPE_F32","shape":[1,2,2],"data":")", Base64({1, 0, 0, 1}),
      R"("},"weights":"ATTENTION_WEIGHTS_PER_HEAD","scale":"1e0","causal":true})");
  const nlohmann::json answer = Ask(kAttend, body);
  // The second row: softmax of 0 and 1.
  EXPECT_THAT(Values(answer["weights"]),
              ElementsAre(1, 0, FloatNear(0.268941f, 1e-5f), FloatNear(0.731059f, 1e-5f)));
  EXPECT_EQ(answer["output"]["shape"], (std::vector<int>{1, 2, 2}));
  const nlohmann::json list = Ask("/attendant.v1.Attention/ListAttention", "");
  EXPECT_EQ(list["kinds"][0]["name"], "scaled_dot_product");
  EXPECT_GT(list["limits"]["max_request_bytes"], 0);
  EXPECT_EQ(server_.Metric(
                R"(attendant_requests_total{code="OK",method="http_attend",model="attention"})"),
            1);
}

TEST_F(AttendantJsonTest, TakesGzip) {
  const std::string body =
      absl::StrCat(R"({"model":"tiny","sequences":{"sequences":[{"text":"hello"},)",
                   std::string(2000, ' '), R"({"text":"world"}]}})");
  EXPECT_EQ(Ask(kEncode, Gzip(body), "Content-Encoding: gzip\r\n")["sequences"].size(), 2u);
}

TEST_F(AttendantJsonTest, AFieldMayNotComeAgainAsNull) {
  Refuses(kEncode, R"({"model":"a","model":null})", "model comes twice");
  Refuses(kEncode, R"({"model":null,"model":"a"})", "model comes twice");
}

TEST_F(AttendantJsonTest, NamesTheFieldThatIsWrong) {
  Refuses(kEncode, "[]", "the body must be an object");
  Refuses(kEncode, "{", "");
  Refuses(kEncode, R"({"modell":"tiny"})",
          "EncodeRequest has no field 'modell'; it has model, id,");
  Refuses(kEncode, R"({"model":3})", "model must be a string");
  Refuses(kEncode, R"({"model":"a","model":"b"})", "model comes twice");
  Refuses(kEncode, R"({"priority":1.5})", "priority must be an integer");
  Refuses(kEncode, R"({"priority":3000000000})", "priority is 3000000000");
  Refuses(kEncode, R"({"truncation":"LEFT"})", "truncation is 'LEFT', it must be one of");
  Refuses(kEncode, R"({"sequences":{},"padded":{}})", "exclude each other");
  Refuses(kEncode, R"({"sequences":{"sequences":{}}})", "sequences.sequences must be an array");
  Refuses(kEncode, R"({"sequences":{"sequences":[{"text":"a"},{"ids":{"token_ids":[1,"x"]}}]}})",
          "sequences.sequences[1].ids.token_ids[1] must be an integer");
  Refuses(kEncode, R"({"outputs":{"pooled":{"normalize":1}}})",
          "outputs.pooled.normalize must be a boolean");
  Refuses(kAttend, R"({"query":{"data":"*"}})", "query.data is not base64");
  Refuses(kAttend, R"({"scale":"wide"})", "scale must be a number");
  Refuses(kEncode, absl::StrCat(R"({"id":")", std::string(257, 'i'), R"("})"), "id has 257 bytes");
  EXPECT_EQ(server_.Metric(R"(attendant_refused_total{reason="message"})"), 15);
}

TEST_F(AttendantJsonTest, ErrorsAreConnects) {
  HttpAnswer answer = Post(kEncode, R"({"model":"none","sequences":{"sequences":[{"text":"a"}]}})");
  EXPECT_EQ(answer.code, 404);
  EXPECT_EQ(Json(answer)["code"], "not_found");
  for (const std::string name : {"connect-timeout-ms", "x-request-timeout-ms"}) {
    answer = Post(kEncode, "{}", name + ": x\r\n");
    EXPECT_EQ(answer.code, 400);
    EXPECT_EQ(Json(answer)["message"], "the header " + name + " must be an integer, not 'x'");
  }
  const std::string request = R"({"model":"tiny","sequences":{"sequences":[{"text":"a"}]}})";
  EXPECT_EQ(Post(kEncode, request, "X-Request-Priority: 101\r\n").code, 400);
  server_.run_gate().Close();
  HttpClient computed(server_.http_port());
  computed.Post(kEncode, request);
  server_.run_gate().AwaitWaiting(1);
  answer = Post(kEncode, request, "Connect-Timeout-Ms: 30\r\n");  // waits in the queue
  EXPECT_EQ(answer.code, 504);
  EXPECT_EQ(Json(answer)["code"], "deadline_exceeded");
  server_.run_gate().Open();
  EXPECT_EQ(computed.Read().code, 200);
  EXPECT_EQ(Get(kEncode).code, 405);
}

// The priority that a body asks for with a header of -5.
int PriorityOf(const std::string& body) {
  JsonRequest<v1::EncodeRequest> request({body, false, 1000}, -5);
  EXPECT_TRUE(request.Scan().ok());
  EXPECT_TRUE(request.Parse().ok());
  return request.message().priority();
}

TEST(JsonRequestTest, TheBodysPriorityGoesBeforeTheHeaders) {
  EXPECT_EQ(PriorityOf("{}"), -5);
  EXPECT_EQ(PriorityOf(R"({"priority":7})"), 7);
}

class WithoutAttentionTest : public DoorsTest {
 protected:
  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.flags.attention_service = false;
    return options;
  }
  WithoutAttentionTest() : DoorsTest(Options()) {}
};

TEST_F(WithoutAttentionTest, ThereIsNoRoute) {
  EXPECT_EQ(Post(kAttend, "{}").code, 404);
  EXPECT_EQ(Post("/attendant.v1.Encoder/ListModels", "{}").code, 200);
}

}  // namespace
}  // namespace attendant
