// SPDX-License-Identifier: Apache-2.0
// The way of HTTP requests through connection, gate and runner, whatever their protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/doors/door_call.h"
#include "server/http/gzip.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kPath[] = "/v1/embeddings";
constexpr char kHello[] = R"({"model":"tiny","input":"hello world"})";

// A request that begins so, and ends with so many more texts.
std::string Repeated(std::string request, int texts) {
  for (int i = 0; i < texts; ++i) request += R"(,"hello")";
  return request + "]}";
}

TEST(AppendJsonBase64Test, PiecesOfLongArraysJoin) {
  for (const size_t count : {0, 1, 3071, 3072, 3073, 10000}) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.37f;
    std::string json = "x";
    AppendJsonBase64(values, json);
    const auto* const bytes = reinterpret_cast<const char*>(values.data());
    EXPECT_EQ(json, absl::StrCat("x\"", absl::Base64Escape({bytes, 4 * count}), "\"")) << count;
  }
}

class HttpRequestTest : public DoorsTest {
 protected:
  std::string Message(const HttpAnswer& answer) {
    const nlohmann::json json = Json(answer);
    return json.contains("error") ? json["error"]["message"].get<std::string>() : answer.body;
  }
};

TEST_F(HttpRequestTest, AConnectionServesOneRequestAfterTheOther) {
  HttpClient client(server_.http_port());
  for (int i = 0; i < 3; ++i) {
    client.Post(kPath, kHello);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.code, 200) << answer.body;
    EXPECT_THAT(answer.head, HasSubstr("Connection: keep-alive\r\n"));
  }
  client.Post(kPath, "{}");
  EXPECT_EQ(client.Read().code, 400);
  client.Post(kPath, kHello, "Connection: close\r\n");
  EXPECT_THAT(client.Read().head, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(HttpRequestTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpClient client(server_.http_port());
  for (int i = 1; i <= 20; ++i) {
    client.Post(kPath,
                absl::StrCat(R"({"model":"tiny","input":[)",
                             std::string(static_cast<size_t>(i - 1) * 2, ' '), "4]}"),
                absl::StrCat("X-Request-Id: r", i, "\r\n"));
  }
  for (int i = 1; i <= 20; ++i) {
    EXPECT_THAT(client.Read().head, HasSubstr(absl::StrCat("X-Request-Id: r", i, "\r\n")));
  }
}

TEST_F(HttpRequestTest, ReadsChunksAndWaitsForContinue) {
  HttpClient client(server_.http_port());
  client.Write(absl::StrCat("POST ", kPath,
                            " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n",
                            "Expect: 100-continue\r\n\r\n"));
  EXPECT_EQ(client.Read(false).code, 100);
  for (const char c : std::string(kHello))
    client.Write(absl::StrCat("1\r\n", std::string(1, c), "\r\n"));
  client.Write("0\r\n\r\n");
  EXPECT_EQ(client.Read().code, 200);
}

TEST_F(HttpRequestTest, GzipGoesInAndOut) {
  const std::string text = absl::StrCat(R"({"model":"tiny","input":[)", std::string(200, ' '),
                                        R"("hello")", std::string(4000, ' '), "]}");
  EXPECT_EQ(Post(kPath, Gzip(text), "Content-Encoding: gzip\r\n").code, 200);
  const std::string many = Repeated(R"({"model":"tiny","input":["hello")", 50);
  const HttpAnswer plain = Post(kPath, many);
  const HttpAnswer packed = Post(kPath, many, "Accept-Encoding: br, gzip;q=0.5\r\n");
  EXPECT_THAT(plain.head, Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(packed.head, HasSubstr("Content-Encoding: gzip\r\n"));
  const absl::StatusOr<std::string> inflated =
      Gunzip(packed.body, GunzippedBytes(packed.body).value_or(0));
  ASSERT_TRUE(inflated.ok());
  EXPECT_EQ(*inflated, plain.body);
}

TEST_F(HttpRequestTest, RefusesBodiesThatItCannotTake) {
  struct Case {
    std::string headers, body;
    int code;
  };
  const std::string bomb = Gzip(std::string(size_t{32} << 20, ' '));
  for (const Case& c : {Case{"Content-Encoding: br\r\n", kHello, 415},
                        Case{"Content-Encoding: gzip\r\n", kHello, 400},
                        Case{"Content-Encoding: gzip\r\n", bomb, 400}}) {
    const HttpAnswer answer = Post(kPath, c.body, c.headers);
    EXPECT_EQ(answer.code, c.code) << Message(answer);
    EXPECT_NE(Message(answer), "") << "in OpenAI's shape";
  }
  HttpClient client(server_.http_port());
  client.Write(absl::StrCat("POST ", kPath,
                            " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17000000\r\n\r\n"));
  EXPECT_EQ(client.Read().code, 413);
  EXPECT_EQ(server_.Metric(R"(attendant_refused_total{reason="message"})"), 4);
}

TEST_F(HttpRequestTest, AChunkedBodyHasTheLimitToo) {
  HttpClient client(server_.http_port());
  client.Write(absl::StrCat("POST ", kPath,
                            " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string megabyte(size_t{1} << 20, ' ');
  for (int i = 0; i < 16; ++i) client.Write(absl::StrCat("100000\r\n", megabyte, "\r\n"));
  client.Write("100000\r\n");
  EXPECT_EQ(client.Read().code, 413);
}

TEST_F(HttpRequestTest, HeadersSetDeadlineAndPriority) {
  for (const char* header :
       {"X-Request-Timeout-Ms: x", "X-Request-Timeout-Ms: 0", "X-Request-Timeout-Ms: -1",
        "X-Request-Priority: 101", "X-Request-Priority: high"}) {
    const HttpAnswer answer = Post(kPath, kHello, absl::StrCat(header, "\r\n"));
    EXPECT_EQ(answer.code, 400) << header;
  }
  EXPECT_EQ(Post(kPath, kHello, "X-Request-Priority: -5\r\n").code, 200);
  server_.run_gate().Close();
  HttpClient first(server_.http_port());
  first.Post(kPath, kHello);
  server_.run_gate().AwaitWaiting(1);
  EXPECT_EQ(Post(kPath, kHello, "X-Request-Timeout-Ms: 30\r\n").code, 504);
  server_.run_gate().Open();
  EXPECT_EQ(first.Read().code, 200);
}

TEST_F(HttpRequestTest, TheTimeThatABodyTakesCountsForItsDeadline) {
  HttpClient client(server_.http_port());
  client.Write(absl::StrCat(
      "POST ", kPath, " HTTP/1.1\r\nHost: localhost\r\nX-Request-Timeout-Ms: 20\r\n",
      "Expect: 100-continue\r\n", "Content-Length: ", std::string_view(kHello).size(), "\r\n\r\n"));
  EXPECT_EQ(client.Read(/*with_body=*/false).code, 100);  // the head has come
  absl::SleepFor(absl::Milliseconds(20));
  client.Write(kHello);
  EXPECT_EQ(client.Read().code, 504);
}

TEST_F(HttpRequestTest, ProbesAnswerWhileRequestsWait) {
  server_.run_gate().Close();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_.http_port()));
    clients.back()->Post(kPath, kHello);
  }
  server_.run_gate().AwaitWaiting(1);
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  absl::Duration took = absl::InfiniteDuration();
  while (took >= absl::Milliseconds(100)) {  // one is enough: other programs compute too
    const absl::Time start = absl::Now();
    ASSERT_LT(start, limit);
    EXPECT_EQ(Get("/healthz").code, 200);
    took = absl::Now() - start;
  }
  server_.run_gate().Open();
  for (const auto& client : clients) EXPECT_EQ(client->Read().code, 200);
}

TEST_F(HttpRequestTest, AClientThatClosesCancels) {
  server_.run_gate().Close();
  HttpClient first(server_.http_port());
  first.Post(kPath, kHello);
  server_.run_gate().AwaitWaiting(1);
  HttpClient second(server_.http_port());
  second.Post(kPath, kHello);
  server_.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", 1);
  second.Close();
  server_.AwaitMetric(
      R"(attendant_requests_total{code="CANCELLED",method="openai_embeddings",model="tiny"})", 1);
  server_.run_gate().Open();
  EXPECT_EQ(first.Read().code, 200);
}

TEST_F(HttpRequestTest, MemoryComesBack) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Post(kPath, kHello).code, 200);
  HttpClient unfinished(server_.http_port());
  unfinished.Write(absl::StrCat("POST ", kPath,
                                " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"));
  const auto held = [this](absl::string_view what) {
    const nlohmann::json page = Json(Get("/connections"));
    for (const nlohmann::json& entry : page["connections"]) {
      if (entry[std::string(what)] != 0) return entry[std::string(what)].get<int>();
    }
    return 0;
  };
  while (held("request_memory_bytes") != 16384) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(held("response_memory_bytes"), 0);
  unfinished.Close();
  while (held("request_memory_bytes") != 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(HttpRequestTest, EmptyLinesBeforeARequestCountForNothing) {
  HttpClient client(server_.http_port());
  for (const char* before : {"\r\n", "", "\r\n\r\n", "\r"}) {
    client.Write(before);
    if (absl::string_view(before) == "\r") client.Write("\n");
    client.Post(kPath, kHello);
    EXPECT_EQ(client.Read().code, 200);
  }
  client.Write("\r");
  client.Post(kPath, kHello);
  EXPECT_EQ(client.Read().code, 400);
}

TEST_F(HttpRequestTest, ABodyThatDoesNotComeIsInTheAccessLog) {
  const TempDirectory folder;
  const std::string path = folder / "access.log";
  InProcessServer::Options options;
  options.flags.access.access_log = path;
  InProcessServer server(options);
  server.AwaitReady();
  double lines = 0;
  for (const char* expect : {"", "Expect: 100-continue\r\n"}) {
    HttpClient client(server.http_port());
    client.Write(absl::StrCat("POST ", kPath,
                              " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n", expect,
                              "\r\n", *expect == 0 ? "{" : ""));
    if (*expect != 0) {
      EXPECT_EQ(client.Read(/*with_body=*/false).code, 100);
    }
    client.Close();
    server.AwaitMetric(R"(attendant_access_log_lines_total{result="written"})", ++lines);
    if (HasFatalFailure()) return;
  }
  std::ifstream log(path);
  std::string line;
  while (std::getline(log, line)) {
    EXPECT_THAT(line, HasSubstr(R"("method":"POST /v1/embeddings")"));
    EXPECT_THAT(line, HasSubstr(R"("code":"CANCELLED")"));
    --lines;
  }
  EXPECT_EQ(lines, 0);
}

TEST_F(HttpRequestTest, WhatIsCountedIsWhatIsSent) {
  // By the connections that have come since the last look: the page forgets after a minute.
  auto sent = [this, peers = std::set<nlohmann::json>()]() mutable {
    const nlohmann::json page = Json(Get("/connections"));
    int64_t bytes = 0;
    for (const nlohmann::json& entry : page["connections"]) {
      if (peers.insert(entry["peer"]).second) bytes += entry["bytes_out"].get<int>();
    }
    return bytes;
  };
  const std::pair<const char*, std::string> requests[] = {
      {kPath, kHello},
      {"/embed", R"({"inputs":"hello"})"},
      {"/v2/models/tiny.ids/infer",
       R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,3],"data":[2,4,3]}]})"},
      {"/v2/models/tiny.ids/infer",
       R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,3],"data":[2,4,3]}],
           "parameters":{"binary_data_output":true}})"},
      {"/attendant.v1.Encoder/Encode",
       R"({"model":"tiny","sequences":{"sequences":[{"text":"hello"}]}})"},
      {"/attendant.v1.Attention/Attend",
       R"({"query":{"dtype":"DTYPE_F32","shape":[1,1,2],"data":"AACAPwAAAEA="}})"},
      {"/embed", Repeated(R"({"inputs":["hello")", 50)},
      {"/tokenize", Repeated(R"({"inputs":["hello")", 50)}};
  for (const auto& [path, body] : requests) {
    const HttpAnswer answer = Post(path, body, "Accept-Encoding: gzip\r\n");
    ASSERT_EQ(answer.code, 200) << path << answer.body;
    EXPECT_EQ(sent(), static_cast<int64_t>(answer.body.size())) << path;
  }
}

TEST_F(HttpRequestTest, PathsHaveTheirMethods) {
  EXPECT_EQ(Get(kPath).code, 405);
  EXPECT_THAT(Get(kPath).head, HasSubstr("Allow: POST\r\n"));
  EXPECT_EQ(Post("/v1/models", "{}").code, 405);
  EXPECT_EQ(Post("/v1/embedding", "{}").code, 404);
}

TEST_F(HttpRequestTest, APathThatNoneHasAnswersAsItsNeighboursDo) {
  const std::pair<HttpAnswer, const char*> answers[] = {
      {Post("/v1/embedding", "{}"),
       R"(\{"error":\{"message":"there is no such path.*","type":"invalid_request_error",)"
       R"("param":null,"code":null\}\})"},
      {Get("/v1/embeddings"),
       R"(\{"error":\{"message":"only POST is served here","type":"invalid_request_error",.*)"},
      {Post("/v2/model/tiny/infer", "{}"), R"(\{"error":"there is no such path.*"\})"},
      {Get("/v2/models/tiny/infer"), R"(\{"error":"only POST is served here"\})"},
      {Get("/v2/embed"), R"(\{"message":"only POST is served here"\})"},
      {Post("/attendant.v1.Encoder/Decode", "{}"),
       R"(\{"code":"unimplemented","message":"there is no such path.*"\})"},
      {Get("/rerank"), R"(\{"error":"only POST is served here","error_type":"Validation"\})"},
      {Get("/embedding"), "there is no such path.*\n"},
      {Post("/metrics", ""), "only GET, HEAD is served here\n"}};
  for (const auto& [answer, shape] : answers) {
    EXPECT_THAT(answer.body, testing::MatchesRegex(shape));
    const bool json = answer.body[0] == '{';
    EXPECT_THAT(answer.head, HasSubstr(json ? "Content-Type: application/json\r\n"
                                            : "Content-Type: text/plain; charset=utf-8\r\n"));
  }
}

TEST_F(HttpRequestTest, ADrainAnswersWhatWasAdmittedAndRefusesTheRest) {
  server_.run_gate().Close();
  HttpClient admitted(server_.http_port());
  admitted.Post(kPath, kHello);
  server_.run_gate().AwaitWaiting(1);
  server_.RequestStop();
  while (Get("/readyz").code != 503) absl::SleepFor(absl::Milliseconds(1));
  const HttpAnswer health = Get("/health");
  EXPECT_EQ(health.code, 503);
  EXPECT_EQ(Json(health)["error_type"], "Unhealthy");
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (Post(kPath, kHello, "X-Request-Timeout-Ms: 20\r\n").code != 503) {
    ASSERT_LT(absl::Now(), limit);
  }
  server_.run_gate().Open();
  EXPECT_EQ(admitted.Read().code, 200);
  EXPECT_TRUE(server_.AwaitStopped().ok());
  EXPECT_EQ(Post(kPath, kHello).code, 503);
}

// The document and the routes come from one table: what it lists is there, and answers.
TEST_F(HttpRequestTest, TheOpenApiDocumentListsTheRoutes) {
  const nlohmann::json document = Json(Get("/openapi.json"));
  ASSERT_TRUE(document.is_object());
  EXPECT_EQ(document["openapi"], "3.1.0");
  int operations = 0;
  for (const auto& [pattern, methods] : document["paths"].items()) {
    std::string path = pattern;
    for (const auto& [word, value] : std::vector<std::pair<std::string, std::string>>{
             {"{model}", "tiny"}, {"{version}", "1"}}) {
      if (absl::StrContains(path, word)) path.replace(path.find(word), word.size(), value);
    }
    for (const auto& [method, operation] : methods.items()) {
      ++operations;
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << pattern;
      // Lists answer an empty message; a message without a model has none.
      const bool list = absl::StrContains(path, "/List");
      const int refused = absl::EndsWith(path, "Encoder/Encode") ? 404 : 400;
      const int code = method == "get" ? Get(path).code : Post(path, "{}").code;
      EXPECT_EQ(code, method == "get" || list ? 200 : refused) << method << " " << path;
      if (method == "get" && operation["responses"]["200"].contains("content")) {
        EXPECT_FALSE(Get(path).body.empty()) << path;
      }
    }
  }
  EXPECT_EQ(operations, 43);
  for (const char* path : {"/v1/embeddings", "/embed", "/v2/models/{model}/infer", "/v2/embed"}) {
    EXPECT_TRUE(document["paths"].contains(path)) << path;
  }
}

TEST(HttpAccessTest, ABearerKeyOpensItsGroups) {
  const TempDirectory directory;
  WriteFile(directory / "keys", "infer-key-0123456789 a infer\nread-key-0123456789 b read\n");
  InProcessServer::Options options;
  options.flags.access.api_keys = directory / "keys";
  InProcessServer server(options);
  server.AwaitReady();
  const auto code = [&server](const std::string& key) {
    return HttpPost(server.http_port(), kPath, kHello,
                    key.empty() ? "" : absl::StrCat("Authorization: Bearer ", key, "\r\n"))
        .code;
  };
  EXPECT_EQ(code(""), 401);
  EXPECT_THAT(HttpPost(server.http_port(), kPath, kHello, "").head,
              HasSubstr("WWW-Authenticate: Bearer\r\n"));
  EXPECT_EQ(code("wrong-key-0123456789"), 401);
  EXPECT_EQ(code("read-key-0123456789"), 403);
  EXPECT_EQ(code("infer-key-0123456789"), 200);
  for (const char* path : {"/healthz", "/health", "/ping"}) {
    EXPECT_EQ(HttpGet(server.http_port(), path).code, 200) << path;
  }
}

}  // namespace
}  // namespace attendant
