// SPDX-License-Identifier: Apache-2.0
#include "server/http/client/otlp_poster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/gzip.h"
#include "tests/server/threads/failing_threads.h"
#include "tests/support/checkpoint.h"
#include "tests/support/closed_port.h"

namespace attendant {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kLong = absl::Minutes(1);

// A port of this machine that takes connections, and answers as the test says.
class Collector {
 public:
  Collector() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, size), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    EXPECT_EQ(getsockname(listener_, any, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Collector() {
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }

  // Takes one request whose body ends with `last`. Gives the connection, which stays open.
  int TakeOne(const std::string& last) {
    const int connection = accept(listener_, nullptr, nullptr);
    char chunk[4096];
    ssize_t bytes = 0;
    while (!absl::EndsWith(request_, last) &&
           (bytes = read(connection, chunk, sizeof(chunk))) > 0) {
      request_.append(chunk, static_cast<size_t>(bytes));
    }
    return connection;
  }
  // Takes one, answers, and closes.
  void AnswerOne(const std::string& last, const std::string& answer) {
    thread_ = std::thread([this, last, answer] {
      const int connection = TakeOne(last);
      const auto size = static_cast<ssize_t>(answer.size());
      EXPECT_EQ(size == 0 ? 0 : send(connection, answer.data(), answer.size(), MSG_NOSIGNAL), size);
      close(connection);
    });
  }
  // What came, once it was answered.
  const std::string& request() {
    if (thread_.joinable()) thread_.join();
    return request_;
  }

  OtlpPosterOptions Options(bool gzip = false) const {
    return {.endpoint = {.host = "127.0.0.1", .port = absl::StrCat(port_), .path = "/v1/traces"},
            .headers = {{"authorization", "Bearer a"}, {"content-type", "text/plain"}},
            .gzip = gzip,
            .version = "1.2.3"};
  }

 private:
  int listener_;
  int port_ = 0;
  std::thread thread_;
  std::string request_;
};

std::unique_ptr<SpanTransport> Poster(OtlpPosterOptions options) {
  absl::StatusOr<std::unique_ptr<SpanTransport>> poster = MakeOtlpPoster(std::move(options));
  EXPECT_TRUE(poster.ok()) << poster.status();
  return *std::move(poster);
}

TEST(OtlpPosterTest, PostsAndReadsTheAnswer) {
  Collector collector;
  collector.AnswerOne("{}", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
  const auto answer = Poster(collector.Options())->Post("{}", kLong);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 200);
  EXPECT_EQ(answer->body, "body");
  EXPECT_EQ(answer->retry_after, "");
  const std::string& request = collector.request();
  EXPECT_TRUE(absl::StartsWith(request, "POST /v1/traces HTTP/1.1\r\n")) << request;
  EXPECT_THAT(request, HasSubstr("Host: 127.0.0.1:"));
  EXPECT_THAT(request, HasSubstr("authorization: Bearer a\r\n"));
  EXPECT_THAT(absl::AsciiStrToLower(request), HasSubstr("content-type: application/json\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("text/plain")));
  EXPECT_THAT(request, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(request, HasSubstr("attendant-otlp/1.2.3"));
  EXPECT_THAT(request, Not(HasSubstr("gzip")));
}

TEST(OtlpPosterTest, CompressesAndTellsWhenToComeBack) {
  const std::string json(10'000, 'x');
  const std::string member = Gzip(json);
  Collector collector;
  collector.AnswerOne(member,
                      "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
  const auto answer = Poster(collector.Options(/*gzip=*/true))->Post(json, kLong);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 429);
  EXPECT_EQ(answer->retry_after, "7");
  EXPECT_THAT(collector.request(), HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_THAT(collector.request(), HasSubstr(absl::StrCat("Content-Length: ", member.size())));
}

TEST(OtlpPosterTest, AHugeBodyIsNotRead) {
  Collector collector;
  collector.AnswerOne("{}", absl::StrCat("HTTP/1.1 503 No\r\nContent-Length: 1000000\r\n\r\n",
                                         std::string(1000, 'x')));
  const auto answer = Poster(collector.Options())->Post("{}", kLong);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 503);
  EXPECT_LE(answer->body.size(), 65536u);
}

TEST(OtlpPosterTest, WithoutACollectorItIsUnavailable) {
  const ClosedPort port;
  OtlpPosterOptions options = Collector().Options();
  options.endpoint.port = absl::StrCat(port.number());
  const absl::Status status = Poster(options)->Post("{}", kLong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.endpoint.authority()));
}

// The first look-up of a host starts a thread.
TEST(OtlpPosterTest, WithoutAThreadItIsUnavailable) {
  Collector collector;
  const auto poster = Poster(collector.Options());
  {
    const FailingThreads none(0);
    const absl::Status status = poster->Post("{}", kLong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("Resource temporarily unavailable"));
  }
  collector.AnswerOne("{}", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(poster->Post("{}", kLong).ok());
}

TEST(OtlpPosterTest, WhatIsNoHttpIsUnavailable) {
  for (const char* answer : {"", "SSH-2.0-x\r\n", "HTTP/1.1 2"}) {
    Collector collector;
    collector.AnswerOne("{}", answer);
    EXPECT_EQ(Poster(collector.Options())->Post("{}", kLong).status().code(),
              absl::StatusCode::kUnavailable)
        << answer;
  }
}

TEST(OtlpPosterTest, ASilentCollectorCostsTheTimeoutOnly) {
  Collector collector;
  const auto poster = Poster(collector.Options());
  const absl::Time start = absl::Now();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(poster->Post("{}", absl::Milliseconds(30)).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(OtlpPosterTest, CancelEndsAPost) {
  Collector collector;
  const auto poster = Poster(collector.Options());
  std::thread post([&] { EXPECT_FALSE(poster->Post("{}", absl::Hours(1)).ok()); });
  const int connection = collector.TakeOne("{}");
  poster->Cancel();
  post.join();
  close(connection);
  EXPECT_FALSE(poster->Post("{}", absl::Hours(1)).ok()) << "and each one after";
}

TEST(OtlpPosterTest, ACollectorWithoutTlsIsNotTrusted) {
  Collector collector;
  collector.AnswerOne("", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  OtlpPosterOptions options = collector.Options();
  options.endpoint.tls = true;
  EXPECT_EQ(Poster(options)->Post("{}", kLong).status().code(), absl::StatusCode::kUnavailable);
}

TEST(OtlpPosterTest, AFileWithoutAuthoritiesIsNamed) {
  TempDirectory directory;
  WriteFile(directory / "ca.pem", "no certificate");
  OtlpPosterOptions options{.endpoint = {.tls = true, .host = "c", .port = "1"}};
  for (const std::string& path : {directory / "ca.pem", directory / "none.pem"}) {
    options.ca_file = path;
    const absl::Status status = MakeOtlpPoster(options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace attendant
