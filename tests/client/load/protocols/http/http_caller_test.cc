// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/http/http_caller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/client/http/canned_server.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<HttpCaller> MakeCaller(int port, const std::vector<std::string>& bodies,
                                       absl::Duration timeout = absl::Seconds(60)) {
  HttpTarget target = *ParseHttpTarget(absl::StrCat("http://127.0.0.1:", port, "/"));
  target.path = "/v1/embeddings";
  target.timeout = timeout;
  std::vector<HttpRequest> requests;
  for (const std::string& body : bodies) requests.push_back({.body = body, .sequences = 3});
  auto caller = HttpCaller::Make(target, requests, [](absl::string_view body, CallResult& result) {
    result.tokens = static_cast<int64_t>(body.size());
  });
  EXPECT_TRUE(caller.ok()) << caller.status();
  return *std::move(caller);
}

CallResult Ask(HttpCaller& caller, int64_t index) {
  absl::Notification done;
  CallResult answer;
  caller.Start(index, 0, [&](const CallResult& result) {
    answer = result;
    done.Notify();
  });
  done.WaitForNotification();
  return answer;
}

TEST(HttpCallerTest, AsksAgainOnTheSameConnection) {
  CannedServer server(
      CannedServer::Answers{{"a", CannedAnswer(200, "[123]")}, {"b", CannedAnswer(200, "{}")}});
  const auto caller = MakeCaller(server.port(), {"a", "b"});
  for (int64_t index = 0; index < 6; ++index) {
    const CallResult result = Ask(*caller, index);
    EXPECT_EQ(result.code, grpc::StatusCode::OK) << result.message;
    EXPECT_EQ(result.sequences, 3);
    EXPECT_EQ(result.tokens, index % 2 == 0 ? 5 : 2);
  }
  EXPECT_EQ(server.num_connections(), 1);
}

TEST(HttpCallerTest, RequestsHaveHeadersAndTokensOfTheirOwn) {
  CannedServer server(CannedServer::Answers{{"a", CannedAnswer(200, "{}")}});
  HttpTarget target = *ParseHttpTarget(absl::StrCat("127.0.0.1:", server.port()));
  target.path = "/p";
  target.headers = {{"X-All", "1"}};
  auto caller = HttpCaller::Make(
      target, {{.body = "a", .tokens = 7, .headers = "X-One: 2\r\n"}, {.body = "a"}},
      [](absl::string_view, CallResult&) {});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(Ask(**caller, 0).tokens, 7);
  EXPECT_THAT(server.last_head(), HasSubstr("X-All: 1\r\nX-One: 2\r\nContent-Length: 1"));
  EXPECT_EQ(Ask(**caller, 1).tokens, std::nullopt);
  EXPECT_THAT(server.last_head(), HasSubstr("X-All: 1\r\nContent-Length: 1"));
}

TEST(HttpCallerTest, StatusesBecomeCodes) {
  CannedServer server(CannedServer::Answers{{"400", CannedAnswer(400, "bad")},
                                            {"404", CannedAnswer(404, "no such model")},
                                            {"429", CannedAnswer(429, "full")},
                                            {"500", CannedAnswer(500, "oh")},
                                            {"501", CannedAnswer(501, "never")},
                                            {"503", CannedAnswer(503, "loading")}});
  const auto caller = MakeCaller(server.port(), {"400", "404", "429", "500", "501", "503"});
  std::vector<grpc::StatusCode> codes;
  for (int64_t index = 0; index < 6; ++index) codes.push_back(Ask(*caller, index).code);
  EXPECT_THAT(codes, ElementsAre(grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::NOT_FOUND,
                                 grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::INTERNAL,
                                 grpc::StatusCode::UNIMPLEMENTED, grpc::StatusCode::UNAVAILABLE));
  EXPECT_EQ(Ask(*caller, 1).message, "HTTP 404: no such model");
}

TEST(HttpCallerTest, WhatIsNotJsonIsAnError) {
  CannedServer server(CannedServer::Answers{{"page", CannedAnswer(200, "<html>Log in")},
                                            {"nothing", CannedAnswer(200, "")},
                                            {"json", CannedAnswer(200, " \n[1]")}});
  const auto caller = MakeCaller(server.port(), {"page", "nothing", "json"});
  EXPECT_EQ(Ask(*caller, 0).code, grpc::StatusCode::INTERNAL);
  EXPECT_EQ(Ask(*caller, 0).message, "HTTP 200: the answer is not JSON: <html>Log in");
  EXPECT_EQ(Ask(*caller, 1).code, grpc::StatusCode::INTERNAL);
  EXPECT_EQ(Ask(*caller, 2).code, grpc::StatusCode::OK);
}

TEST(HttpCallerTest, ARequestIsSentAgainWhereTheServerHasClosedItsConnection) {
  CannedServer server(CannedServer::Answers{{"a", CannedAnswer(200, "{}")}});
  const auto caller = MakeCaller(server.port(), {"a"});
  const CallResult first = Ask(*caller, 0);
  EXPECT_EQ(first.code, grpc::StatusCode::OK);
  EXPECT_EQ(first.resent, 0);
  server.CloseConnections();
  const CallResult second = Ask(*caller, 0);
  EXPECT_EQ(second.code, grpc::StatusCode::OK);
  EXPECT_EQ(second.resent, 1);
  EXPECT_EQ(server.num_connections(), 2);
}

TEST(HttpCallerTest, NoAnswerIsAnError) {
  CannedServer server(CannedServer::Answers{{"closed", ""}, {"nonsense", "nonsense\r\n\r\n"}});
  const auto caller = MakeCaller(server.port(), {"closed", "nonsense"});
  EXPECT_EQ(Ask(*caller, 0).code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(*caller, 1).code, grpc::StatusCode::UNAVAILABLE);
  const auto late = MakeCaller(server.port(), {"silence"}, absl::Milliseconds(50));
  EXPECT_EQ(Ask(*late, 0).code, grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(HttpCallerTest, CancelAllEndsEveryCall) {
  CannedServer server(CannedServer::Answers{});
  const auto caller = MakeCaller(server.port(), {"silence"});
  absl::Notification first, second;
  const auto expect_cancelled = [](absl::Notification& done) {
    return [&done](const CallResult& result) {
      EXPECT_EQ(result.code, grpc::StatusCode::CANCELLED);
      done.Notify();
    };
  };
  caller->Start(0, 0, expect_cancelled(first));
  caller->CancelAll();
  first.WaitForNotification();
  caller->Start(0, 0, expect_cancelled(second));
  MakeCaller(server.port(), {"silence"})->Start(0, 0, [](const CallResult&) {});  // its destructor
  caller->CancelAll();
  second.WaitForNotification();
}

TEST(HttpCallerTest, ReadsAddresses) {
  const auto target = ParseHttpTarget("[::1]:8002");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->address, "[::1]:8002");
  EXPECT_EQ(ParseHttpTarget("http://host:8002/")->address, "host:8002");
  for (const char* address :
       {"", "host", ":8002", "host:http", "https://host:8002", "host:80/path"}) {
    const absl::Status status = ParseHttpTarget(address).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << address;
    EXPECT_THAT(status.message(), HasSubstr("HOST:PORT"));
  }
}

}  // namespace
}  // namespace attendant::client
