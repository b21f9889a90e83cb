// SPDX-License-Identifier: Apache-2.0
#include "client/http/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "client/http/http_options.h"
#include "tests/client/http/canned_server.h"

namespace attendant::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(1);

HttpClientOptions Options(int port) {
  return {.address = absl::StrCat("127.0.0.1:", port), .path = "/"};
}

std::unique_ptr<HttpClient> Make(HttpClientOptions options) {
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Make(std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

absl::StatusOr<HttpAnswer> Ask(HttpClient& client, const std::string& body,
                               absl::Duration timeout = kLong) {
  absl::Notification done;
  absl::StatusOr<HttpAnswer> answer;
  client.Send({.body = body}, timeout, [&](absl::StatusOr<HttpAnswer> result) {
    answer = std::move(result);
    done.Notify();
  });
  done.WaitForNotification();
  return answer;
}

TEST(HttpClientTest, AHeadHasEachHeaderOnce) {
  EXPECT_EQ(HttpHead({.address = "[::1]:80",
                      .path = "/p",
                      .headers = {{"a", "1"},
                                  {"content-length", "7"},
                                  {"b", "2"},
                                  {"host", "other"},
                                  {"Transfer-Encoding", "chunked"},
                                  {"A", "3"}}}),
            "POST /p HTTP/1.1\r\nHost: [::1]:80\r\nb: 2\r\nA: 3\r\n");
  EXPECT_EQ(HttpHead({.address = "h:1", .path = "/", .keep_alive = false}),
            "POST / HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n");
}

TEST(HttpClientTest, ARequestHasHeadersOfItsOwn) {
  CannedServer server(CannedServer::Answers{{"a", CannedAnswer(200, "1")}});
  const auto client = Make(Options(server.port()));
  for (const std::string own : {"X-Own: 1\r\nX-Other: 2\r\n", ""}) {
    absl::Notification done;
    client->Send({.body = "a", .headers = own}, kLong,
                 [&](const absl::StatusOr<HttpAnswer>& answer) {
                   EXPECT_TRUE(answer.ok()) << answer.status();
                   done.Notify();
                 });
    done.WaitForNotification();
    EXPECT_EQ(server.last_head(), absl::StrCat("POST / HTTP/1.1\r\nHost: 127.0.0.1:", server.port(),
                                               "\r\n", own, "Content-Length: 1"));
  }
}

TEST(HttpClientTest, SendsAnotherMethod) {
  CannedServer server(CannedServer::Answers{{"/model", CannedAnswer(200, "1")}});
  HttpClientOptions options = Options(server.port());
  options.method = "GET";
  options.path = "/model";
  EXPECT_EQ(Ask(*Make(options), "")->body, "1");
  EXPECT_THAT(server.last_head(), ::testing::StartsWith("GET /model HTTP/1.1\r\n"));
}

TEST(HttpClientTest, TakesAddressesWithAPort) {
  for (const char* address : {"host:80", "[::1]:8002", "[fe80::1%eth0]:8002"}) {
    EXPECT_TRUE(HttpClient::Make({.address = address, .path = "/"}).ok()) << address;
  }
  for (const char* address :
       {"", "host", "host:", "host:abc", "host:0", "::1:80", "host:80/path"}) {
    const absl::Status status = HttpClient::Make({.address = address, .path = "/"}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    EXPECT_EQ(std::string(status.message()), absl::StrCat("'", address, "' is not HOST:PORT"))
        << address;
  }
}

TEST(HttpClientTest, AuthoritiesMustBePem) {
  for (const char* authorities : {"", "no certificate"}) {
    const absl::Status status =
        HttpClient::Make({.address = "h:1", .path = "/", .tls = true, .authorities = authorities})
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

TEST(HttpClientTest, WithoutKeepAliveEachRequestHasItsConnection) {
  CannedServer server(CannedServer::Answers{{"a", CannedAnswer(200, "1")}});
  for (const bool keep_alive : {true, false}) {
    const size_t before = server.num_connections();
    HttpClientOptions options = Options(server.port());
    options.keep_alive = keep_alive;
    const auto client = Make(options);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask(*client, "a")->body, "1");
    EXPECT_EQ(server.num_connections() - before, keep_alive ? 1 : 3);
  }
}

TEST(HttpClientTest, ABodyMayEndWithItsConnection) {
  CannedServer server(
      CannedServer::Answers{{"a", "HTTP/1.1 200 x\r\nConnection: close\r\n\r\nbody"}});
  const auto client = Make(Options(server.port()));
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<HttpAnswer> answer = Ask(*client, "a");
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body, "body");
    EXPECT_TRUE(answer->body_status.ok()) << answer->body_status;
  }
}

TEST(HttpClientTest, ReadsChunks) {
  CannedServer server(CannedServer::Answers{
      {"a",
       "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"}});
  const auto client = Make(Options(server.port()));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Ask(*client, "a")->body, "body");
  EXPECT_EQ(server.num_connections(), 1);
}

TEST(HttpClientTest, ACutBodySaysWhy) {
  const std::string head = "HTTP/1.1 429 x\r\nRetry-After: 7\r\nContent-Length: 100\r\n";
  CannedServer server(
      CannedServer::Answers{{"close", absl::StrCat(head, "Connection: close\r\n\r\nbody")},
                            {"wait", absl::StrCat(head, "\r\nbody")},
                            {"long", CannedAnswer(429, std::string(101, 'x'))},
                            {"chunks", absl::StrCat("HTTP/1.1 429 x\r\nTransfer-Encoding: chunked"
                                                    "\r\n\r\n4\r\nbody\r\n65\r\n",
                                                    std::string(101, 'x'), "\r\n0\r\n\r\n")}});
  HttpClientOptions options = Options(server.port());
  options.max_answer_bytes = 100;
  const auto client = Make(options);
  for (const auto& [request, code] : {std::pair("close", absl::StatusCode::kUnavailable),
                                      std::pair("wait", absl::StatusCode::kDeadlineExceeded),
                                      std::pair("long", absl::StatusCode::kUnavailable),
                                      std::pair("chunks", absl::StatusCode::kUnavailable)}) {
    const bool waits = code == absl::StatusCode::kDeadlineExceeded;
    absl::Duration timeout = waits ? absl::Milliseconds(300) : kLong;
    auto answer = Ask(*client, request, timeout);
    // The head may take longer on a busy machine.
    while (!answer.ok() && timeout < kLong) answer = Ask(*client, request, timeout *= 2);
    ASSERT_TRUE(answer.ok()) << request << ": " << answer.status();
    EXPECT_EQ(answer->code, 429);
    EXPECT_EQ(answer->body_status.code(), code) << request;
    EXPECT_EQ(answer->body, std::string(request) == "long" ? "" : "body");
  }
  EXPECT_EQ(Ask(*client, "close")->retry_after, "7");
}

TEST(HttpClientTest, AnAnswerThatIsNeverParsedIsCut) {
  const std::string head = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string trailers;
  for (int i = 0; i < 10000; ++i) trailers += "X: 0123456789\r\n";
  CannedServer server(CannedServer::Answers{
      {"extension", absl::StrCat(head, "5;a=", std::string(size_t{1} << 18, 'a'))},
      {"trailers", absl::StrCat(head, "0\r\n", trailers)},
      {"fits", absl::StrCat(head, "4;a=", std::string(30000, 'a'),
                            "\r\nbody\r\n0\r\nX: ", std::string(30000, 'x'), "\r\n\r\n")}});
  const auto client = Make(Options(server.port()));
  for (const char* request : {"extension", "trailers"}) {
    const auto answer = Ask(*client, request, absl::Seconds(10));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body_status.code(), absl::StatusCode::kUnavailable) << answer->body_status;
  }
  const auto answer = Ask(*client, "fits");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->body_status.ok()) << answer->body_status;
  EXPECT_EQ(answer->body, "body");
}

TEST(HttpClientTest, ALengthBeyondAllMemoryIsAnError) {
  CannedServer::Answers answers;
  for (const char* length : {"1000000000000000", "9223372036854775800", "18446744073709551614"}) {
    answers[length] = absl::StrCat("HTTP/1.1 200 x\r\nContent-Length: ", length, "\r\n\r\nx");
  }
  CannedServer server(answers);
  const auto client = Make(Options(server.port()));
  for (const auto& [request, bytes] : answers) {
    const auto answer = Ask(*client, request);
    EXPECT_FALSE(answer.ok() && answer->body_status.ok()) << request;
  }
}

TEST(HttpClientTest, BytesBehindAnAnswerAnswerNoOtherRequest) {
  CannedServer server(CannedServer::Answers{
      {"a", absl::StrCat(CannedAnswer(200, "right"), CannedAnswer(200, "wrong"))}});
  const auto client = Make(Options(server.port()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask(*client, "a")->body, "right");
  EXPECT_EQ(server.num_connections(), 3);
}

TEST(HttpClientTest, InterimAnswersAreSkipped) {
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string hints = "HTTP/1.1 103 x\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\n";
  const auto many = [&](int count) {
    std::string answers;
    for (int i = 0; i < count; ++i) answers += interim;
    return absl::StrCat(answers, CannedAnswer(200, "right"));
  };
  CannedServer server(CannedServer::Answers{
      {"one", many(1)},
      {"hints", absl::StrCat(interim, hints, CannedAnswer(429, "later"))},
      {"most", many(16)},
      {"too many", many(17)},
      {"nothing behind", absl::StrCat(interim, "HTTP/1.1 2 Connection: close")},
      {"other protocol", "HTTP/1.1 101 x\r\nConnection: close\r\n\r\n"}});
  const auto client = Make(Options(server.port()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Ask(*client, "one")->body, "right");
    EXPECT_EQ(Ask(*client, "most")->body, "right");
    const absl::StatusOr<HttpAnswer> hinted = Ask(*client, "hints");
    EXPECT_EQ(hinted->code, 429);
    EXPECT_EQ(hinted->retry_after, "");
  }
  EXPECT_EQ(server.num_connections(), 1);
  EXPECT_THAT(Ask(*client, "too many").status().message(), HasSubstr("interim answers"));
  EXPECT_TRUE(absl::IsUnavailable(Ask(*client, "too many").status()));
  EXPECT_TRUE(absl::IsUnavailable(Ask(*client, "nothing behind").status()));
  EXPECT_EQ(Ask(*client, "other protocol")->code, 101);
}

TEST(HttpClientTest, WhatIsNoHttpIsUnavailable) {
  CannedServer server(CannedServer::Answers{
      {"none", ""}, {"ssh", "SSH-2.0-x\r\n"}, {"cut", "HTTP/1.1 2 Connection: close"}});
  const auto client = Make(Options(server.port()));
  for (const char* request : {"none", "ssh", "cut"}) {
    const absl::Status status = Ask(*client, request).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << request << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("127.0.0.1:", server.port())));
  }
  EXPECT_THAT(Ask(*client, "ssh").status().message(), HasSubstr("not HTTP/1.1"));
}

TEST(HttpClientTest, EveryRequestEndsOnce) {
  constexpr int kRequests = 20;
  CannedServer server(CannedServer::Answers{{"a", CannedAnswer(200, "1")}});
  std::atomic<int> answered = 0, cancelled = 0;
  absl::BlockingCounter answers(kRequests);
  {
    const auto client = Make(Options(server.port()));
    for (int i = 0; i < kRequests; ++i) {
      client->Send({.body = "a"}, kLong, [&](const absl::StatusOr<HttpAnswer>& answer) {
        answered += answer.ok();
        answers.DecrementCount();
      });
      client->Send({.body = "silence"}, kLong, [&](const absl::StatusOr<HttpAnswer>& answer) {
        cancelled += absl::IsCancelled(answer.status());
      });
    }
    answers.Wait();
    client->CancelAll();
    client->Send({.body = "silence"}, kLong, [&](const absl::StatusOr<HttpAnswer>& answer) {
      cancelled += absl::IsCancelled(answer.status());
    });
  }
  EXPECT_EQ(answered, kRequests);
  EXPECT_EQ(cancelled, kRequests + 1);
}

}  // namespace
}  // namespace attendant::client
