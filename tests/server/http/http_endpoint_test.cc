// SPDX-License-Identifier: Apache-2.0
#include "server/http/port/http_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/http/connection/http_connection.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/http/http_client.h"
#include "tests/server/metrics/exposition.h"

namespace attendant {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HttpEndpointTest : public testing::Test {
 protected:
  void SetUp() override { endpoint_ = ListenOn("127.0.0.1:0"); }

  std::unique_ptr<HttpEndpoint> ListenOn(const std::string& address, HttpDoors doors = {}) {
    const auto ready = [this] {
      absl::MutexLock lock(&mutex_);
      return ready_;
    };
    auto endpoint = HttpEndpoint::Listen(address, metrics_, {.ready = ready}, {}, std::move(doors));
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    return endpoint.ok() ? *std::move(endpoint) : nullptr;
  }

  absl::StatusCode ListenCode(const std::string& address) {
    return HttpEndpoint::Listen(address, metrics_, {.ready = [] { return absl::OkStatus(); }})
        .status()
        .code();
  }

  void SetReady(absl::Status ready) {
    absl::MutexLock lock(&mutex_);
    ready_ = std::move(ready);
  }

  std::string Ask(const std::string& text) {
    HttpClient connection(endpoint_->port());
    connection.Write(text);
    return connection.ReadAll();
  }
  std::string Request(const std::string& method, const std::string& path) {
    return Ask(absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }

  static std::string Body(const std::string& response) {
    const size_t end = response.find("\r\n\r\n");
    return end == std::string::npos ? "" : response.substr(end + 4);
  }

  ServerMetrics metrics_{"test"};
  absl::Mutex mutex_;
  absl::Status ready_;
  std::unique_ptr<HttpEndpoint> endpoint_;
};

TEST_F(HttpEndpointTest, ServesMetrics) {
  metrics_.ForModel("m")->CountTokens(5, 0);
  const std::string response = Request("GET", "/metrics");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const absl::StatusOr<Exposition> scrape = Exposition::Parse(Body(response));
  ASSERT_TRUE(scrape.ok()) << scrape.status();
  EXPECT_EQ(scrape->Value("attendant_tokens_total", {{"model", "m"}, {"kind", "valid"}}), 5);
}

TEST_F(HttpEndpointTest, EachScrapeIsNew) {
  for (int tokens = 1; tokens <= 3; ++tokens) {
    metrics_.ForModel("m")->CountTokens(1, 0);
    const absl::StatusOr<Exposition> scrape = Exposition::Parse(Body(Request("GET", "/metrics")));
    ASSERT_TRUE(scrape.ok()) << scrape.status();
    EXPECT_EQ(scrape->Value("attendant_tokens_total", {{"model", "m"}, {"kind", "valid"}}), tokens);
  }
}

TEST_F(HttpEndpointTest, IsHealthyWhileItLives) {
  SetReady(absl::UnavailableError("loading"));
  const std::string response = Request("GET", "/healthz");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(Body(response), "ok\n");
}

TEST_F(HttpEndpointTest, ServesFurtherPages) {
  const auto listen = [this](const std::string& address) {
    const auto text = [] { return std::string("{}"); };
    return *HttpEndpoint::Listen(
        address, metrics_, {.ready = [] { return absl::OkStatus(); }},
        {{.path = "/page", .content_type = "application/json", .body = text},
         {.path = "/inside", .content_type = "x/y", .body = text, .only_on_loopback = true}});
  };
  endpoint_ = listen("127.0.0.1:0");
  EXPECT_THAT(Request("GET", "/page?x=1"), HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(Body(Request("GET", "/inside")), "{}");
  EXPECT_THAT(Request("GET", "/pag"), StartsWith("HTTP/1.1 404 "));
  endpoint_ = listen("0.0.0.0:0");
  EXPECT_THAT(Request("GET", "/page"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Request("GET", "/inside"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(HttpEndpointTest, AForeignWebPageCannotUseALoopbackPort) {
  const std::string rebound = "GET /metrics HTTP/1.1\r\nHost: evil.example:8002\r\n\r\n";
  const std::string cross =
      "POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n"
      "Content-Length: 0\r\n\r\n";
  EXPECT_THAT(Ask(rebound), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask(cross), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
                  "Origin: http://evil.example\r\n\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  endpoint_ = ListenOn("0.0.0.0:0");
  EXPECT_THAT(Ask(rebound), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(cross), StartsWith("HTTP/1.1 405 "));
}

// More than the system takes at once, read a little at a time.
TEST_F(HttpEndpointTest, ServesALongPageToTheLastByte) {
  constexpr size_t kBytes = size_t{1} << 24;
  endpoint_ = *HttpEndpoint::Listen(
      "127.0.0.1:0", metrics_, {.ready = [] { return absl::OkStatus(); }},
      {{.path = "/long", .content_type = "x/y", .body = [] { return std::string(kBytes, 'x'); }}});
  EXPECT_EQ(Body(Request("GET", "/long")), std::string(kBytes, 'x'));
}

TEST_F(HttpEndpointTest, IsReadyWhenItSaysSo) {
  SetReady(absl::UnavailableError("model m is loading"));
  const std::string loading = Request("GET", "/readyz");
  EXPECT_THAT(loading, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(Body(loading), HasSubstr("model m is loading"));
  SetReady(absl::OkStatus());
  EXPECT_THAT(Request("GET", "/readyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpEndpointTest, HeadHasTheHeadersOnly) {
  const std::string response = Request("HEAD", "/healthz");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_EQ(Body(response), "");
}

TEST_F(HttpEndpointTest, NothingElseIsThere) {
  for (const char* path : {"/", "/metrics/", "/metricsx", "/healthz/../metrics2", "/etc/passwd",
                           "/..%2f..%2fetc/passwd", "/%00", "//"}) {
    const std::string response = Request("GET", path);
    EXPECT_THAT(response, testing::ContainsRegex("^HTTP/1.1 40[04] ")) << path;
    EXPECT_THAT(response, Not(HasSubstr("root:"))) << path;
  }
}

TEST_F(HttpEndpointTest, QueriesDoNotMatter) {
  EXPECT_THAT(Request("GET", "/healthz?verbose=1"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpEndpointTest, OnlyGetAndHead) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "M-SEARCH"}) {
    const std::string response = Request(method, "/metrics");
    EXPECT_THAT(response, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n")) << method;
    EXPECT_THAT(response, HasSubstr("Allow: GET, HEAD\r\n"));
  }
}

TEST_F(HttpEndpointTest, APageIsMadeForGetAndHeadOnly) {
  std::atomic<int> made = 0;
  endpoint_ = *HttpEndpoint::Listen(
      "127.0.0.1:0", metrics_, {.ready = [] { return absl::OkStatus(); }},
      {{.path = "/page", .content_type = "x/y", .body = [&made] { return ++made, "body"; }}});
  EXPECT_THAT(Request("POST", "/page"), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(made, 0);
  EXPECT_THAT(Request("HEAD", "/page"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(made, 1);
  endpoint_.reset();
}

TEST_F(HttpEndpointTest, APostWithABodyIsRefused) {
  EXPECT_THAT(Ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"),
              StartsWith("HTTP/1.1 405 "));
}

TEST_F(HttpEndpointTest, SurvivesWhatIsNotHttp) {
  std::string garbage;
  for (int i = 0; i < 4096; ++i) garbage.push_back(static_cast<char>(i * 167));
  for (const std::string& text :
       {garbage, std::string("GET\r\n\r\n"), std::string("\r\n\r\n"), std::string(3, '\0'),
        std::string("GET /metrics SPDY/9\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        "GET /" + std::string(100000, 'a') + " HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n" + std::string(30000, 'h') + ": x\r\n\r\n"}) {
    HttpClient connection(endpoint_->port());
    connection.Write(text);
  }
  EXPECT_THAT(Request("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpEndpointTest, ASlowClientIsDroppedAndOthersAreServed) {
  const absl::Time start = absl::Now();
  HttpClient silent(endpoint_->port()), dripping(endpoint_->port());
  silent.Write("GET /healthz HT");
  EXPECT_THAT(Request("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  while (dripping.Drip('x')) {
    ASSERT_LT(absl::Now() - start, absl::Seconds(10));
  }
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST_F(HttpEndpointTest, ReadsARequestInPieces) {
  HttpClient connection(endpoint_->port());
  for (const char* piece : {"GET /hea", "lthz HTTP/1.0\r", "\n\r", "\n"}) {
    connection.Write(piece);
    EXPECT_THAT(Request("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
  EXPECT_THAT(connection.ReadAll(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

// The oldest of them make room: nothing waits for their three seconds to pass.
TEST_F(HttpEndpointTest, ManyIdleClientsDoNotKeepOthersOut) {
  endpoint_ = ListenOn("127.0.0.1:0", {.limits = {.max_connections = 64}});
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<HttpClient>(endpoint_->port()));
  const absl::Time start = absl::Now();
  EXPECT_THAT(Request("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_LT(absl::Now() - start, HttpConnection::Times().head);
  EXPECT_EQ(idle.front()->ReadAll(), "");
}

std::string Headers(int count) {
  std::string headers;
  for (int i = 0; i < count; ++i) headers += "a:b\r\n";
  return headers;
}

struct BadRequest {
  std::string text;
  std::string status;
};

TEST_F(HttpEndpointTest, SaysWhatIsWrongWithARequest) {
  const std::vector<BadRequest> cases = {
      {"GET\r\n\r\n", "400"},
      {"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"},
      {"\n\n", "400"},
      {"get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
      {"GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
      {"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", "400"},
      {"GET /healthz\r\nHost: localhost\r\n\r\n", "400"},
      {"GET http://localhost/healthz?x HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"},
      {"GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
      {absl::StrCat("GET /healthz HTTP/1.1\r\nHost: localhost\r\n", Headers(127), "\r\n"), "200"},
      {absl::StrCat("GET /healthz HTTP/1.1\r\nHost: localhost\r\n", Headers(128), "\r\n"), "431"},
      {"GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n", "431"}};
  for (const BadRequest& c : cases) {
    EXPECT_THAT(Ask(c.text), StartsWith("HTTP/1.1 " + c.status + " ")) << c.text.substr(0, 80);
  }
}

TEST_F(HttpEndpointTest, StopsAtOnceWithAClientConnected) {
  HttpClient idle(endpoint_->port());
  const absl::Time start = absl::Now();
  endpoint_.reset();
  EXPECT_LT(absl::Now() - start, HttpConnection::Times().head);
  EXPECT_EQ(idle.ReadAll(), "");
}

TEST_F(HttpEndpointTest, AnswersManyAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back(
        [this] { EXPECT_THAT(Request("GET", "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n")); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HttpEndpointTest, AnAddressInUseIsUnavailable) {
  const std::string address = absl::StrCat("127.0.0.1:", endpoint_->port());
  const auto second =
      HttpEndpoint::Listen(address, metrics_, {.ready = [] { return absl::OkStatus(); }});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
}

TEST_F(HttpEndpointTest, APortIsFreeAgainAfterwards) {
  const int port = endpoint_->port();
  EXPECT_GT(port, 0);
  endpoint_.reset();
  endpoint_ = ListenOn(absl::StrCat("127.0.0.1:", port));
  EXPECT_EQ(endpoint_->port(), port);
}

TEST_F(HttpEndpointTest, ReadsHostNamesAndIpv6) {
  endpoint_ = ListenOn("localhost:0");
  EXPECT_THAT(Request("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::unique_ptr<HttpEndpoint> loopback6 = ListenOn("[::1]:0");
  EXPECT_GT(loopback6->port(), 0);
  endpoint_ = ListenOn("[::]:0");
  EXPECT_THAT(Request("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n")) << "IPv4 too";
}

TEST_F(HttpEndpointTest, RefusesAddressesThatItCannotRead) {
  for (const char* address :
       {"", "8002", ":8002", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
        "127.0.0.1:-1", "127.0.0.1:80s", "127.0.0.1:1,127.0.0.1:2", "::1:8002", "[]:8002", "[::1]",
        "[::1:8002", "a b:8002", "+127.0.0.1:8002", "127.0.0.1:8002r"}) {
    EXPECT_EQ(ListenCode(address), absl::StatusCode::kInvalidArgument) << address;
  }
  EXPECT_EQ(ListenCode("203.0.113.1:8002"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ListenCode("no-such-host.invalid:8002"), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace attendant
