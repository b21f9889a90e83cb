// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/console/console_files.h"
#include "server/http/gzip.h"
#include "tests/server/http/doors_fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;

class ConsoleTest : public DoorsTest {
 protected:
  // What the live numbers tell of the model.
  nlohmann::json Tiny() {
    const nlohmann::json models = Json(Get("/console/live"))["models"];
    for (const nlohmann::json& model : models) {
      if (model["model"] == "tiny") return model;
    }
    return nlohmann::json();
  }
};

TEST_F(ConsoleTest, ServesItsFiles) {
  size_t wire_bytes = 0;
  for (const EmbeddedFile& file : ConsoleFiles()) {
    const std::string path = file.name == "index.html" ? "/" : "/console/" + std::string(file.name);
    const HttpAnswer plain = Get(path);
    EXPECT_EQ(plain.code, 200) << path;
    EXPECT_EQ(plain.body, file.bytes);
    EXPECT_THAT(plain.head,
                HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'; "
                          "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
                          "form-action 'none'; frame-ancestors 'none'\r\n"));
    for (const char* header :
         {"Cross-Origin-Opener-Policy: same-origin", "Cross-Origin-Resource-Policy: same-origin",
          "Permissions-Policy: camera=(), geolocation=(), microphone=()",
          "Referrer-Policy: no-referrer", "X-Content-Type-Options: nosniff",
          "X-Frame-Options: DENY"}) {
      EXPECT_THAT(plain.head, HasSubstr(absl::StrCat("\r\n", header, "\r\n"))) << path;
    }
    const HttpAnswer packed = Get(path, "Accept-Encoding: gzip\r\n");
    EXPECT_THAT(packed.head, HasSubstr("Content-Encoding: gzip\r\n"));
    const auto inflated = Gunzip(packed.body, GunzippedBytes(packed.body).value_or(0));
    ASSERT_TRUE(inflated.ok());
    EXPECT_EQ(*inflated, file.bytes);
    wire_bytes += packed.head.size() + packed.body.size();
  }
  EXPECT_LE(wire_bytes, 200u << 10) << "the first view loads all of them";
  EXPECT_GT(wire_bytes, 0u);
}

TEST_F(ConsoleTest, TypesAreRight) {
  EXPECT_THAT(Get("/").head, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(Get("/console/app.js").head,
              HasSubstr("Content-Type: text/javascript; charset=utf-8\r\n"));
  EXPECT_THAT(Get("/console/style.css").head,
              HasSubstr("Content-Type: text/css; charset=utf-8\r\n"));
  EXPECT_THAT(Get("/console/icon.svg").head, HasSubstr("Content-Type: image/svg+xml\r\n"));
  EXPECT_EQ(Get("/console/").code, 404);
  EXPECT_EQ(Get("/console/../app.js").code, 404);
  EXPECT_EQ(Post("/console/app.js", "").code, 405);
}

TEST_F(ConsoleTest, HeadHasNoBody) {
  HttpClient client(server_.http_port());
  client.Write("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(ConsoleTest, LiveNumbersFollowTheRequests) {
  EXPECT_EQ(Tiny()["requests"], 0);
  EXPECT_EQ(Post("/embed", R"({"inputs":["hello world","hello"]})").code, 200);
  EXPECT_EQ(Post("/embed", R"({"inputs":3})").code, 400);
  const nlohmann::json model = Tiny();
  EXPECT_EQ(model["requests"], 1);
  EXPECT_EQ(model["failed"], 1);
  EXPECT_EQ(model["tokens"], 7);
  EXPECT_EQ(model["inflight"], 0);
  const nlohmann::json live = Json(Get("/console/live"));
  EXPECT_GT(live["processor_s"], 0);
  for (const auto& [name, histogram, bounds] :
       {std::tuple("total", model["phases"]["total"], live["bounds"]["seconds"]),
        {"batch_tokens", model["batch_tokens"], live["bounds"]["tokens"]},
        {"batch_requests", model["batch_requests"], live["bounds"]["requests"]}}) {
    EXPECT_EQ(histogram["counts"].size(), bounds.size() + 1) << name;
  }
  int64_t answered = 0;
  for (const nlohmann::json& samples : model["phases"]["compute"]["counts"])
    answered += samples.get<int64_t>();
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(model["batch_tokens"]["sum"], 7);
}

TEST_F(ConsoleTest, LiveNumbersTellWhatWaits) {
  server_.run_gate().Close();
  HttpClient running(server_.http_port());
  running.Post("/embed", R"({"inputs":"hello"})");
  server_.run_gate().AwaitWaiting(1);
  HttpClient waiting(server_.http_port());
  waiting.Post("/embed", R"({"inputs":"hello world"})");
  server_.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", 1);
  const nlohmann::json model = Tiny();
  EXPECT_EQ(model["queue_requests"], 1);
  EXPECT_EQ(model["queue_tokens"], 4);
  EXPECT_EQ(model["inflight"], 2);
  EXPECT_EQ(model["rejected"], 0);
  server_.run_gate().Open();
  EXPECT_EQ(running.Read().code, 200);
  EXPECT_EQ(waiting.Read().code, 200);
}

class WithoutConsoleTest : public DoorsTest {
 protected:
  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.flags.console = false;
    return options;
  }
  WithoutConsoleTest() : DoorsTest(Options()) {}
};

TEST_F(WithoutConsoleTest, NothingIsThere) {
  for (const char* path : {"/console/app.js", "/console/live"}) EXPECT_EQ(Get(path).code, 404);
  EXPECT_EQ(Get("/").code, 405) << "TEI's clients post there";
  EXPECT_EQ(Get("/healthz").code, 200);
}

}  // namespace
}  // namespace attendant
