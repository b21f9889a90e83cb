// SPDX-License-Identifier: Apache-2.0
// Connections whose requests are in work at a route.
#include "server/http/connection/http_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/http/port/http_endpoint.h"
#include "server/net/listening_socket.h"
#include "server/requests/call_state.h"
#include "server/threads/steady_time.h"
#include "tests/server/http/holding_port.h"
#include "tests/server/http/http_client.h"

namespace attendant {
namespace {

using testing::HasSubstr;

class HttpConnectionTest : public HoldingPortTest {};

TEST_F(HttpConnectionTest, ARequestAboveTheLimitIsRefused) {
  HttpClient first(endpoint_->port()), second(endpoint_->port()), third(endpoint_->port());
  first.Post(kPath, "");
  std::unique_ptr<HttpExchange> one = AwaitRequest();
  second.Post(kPath, "");
  std::unique_ptr<HttpExchange> two = AwaitRequest();
  third.Post(kPath, "");
  const HttpAnswer refused = third.Read();
  EXPECT_EQ(refused.code, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(metrics_.Scrape(), HasSubstr("attendant_refused_total{reason=\"http_requests\"} 1"));
  EXPECT_EQ(Probe(kOpenPath), 200) << "what is open to anybody is never one too many";
  EndExchange(std::move(one), absl::OkStatus());
  EndExchange(std::move(two), absl::OkStatus());
  EXPECT_EQ(first.Read().code, 200);
  EXPECT_EQ(second.Read().code, 200);
}

TEST_F(HttpConnectionTest, ARequestInWorkKeepsItsConnectionBesideManyIdleOnes) {
  HttpClient client(endpoint_->port()), open_client(endpoint_->port());
  client.Post(kPath, "");
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  open_client.Get(kOpenHoldPath);
  std::unique_ptr<HttpExchange> open_exchange = AwaitRequest();
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<HttpClient>(endpoint_->port()));
  EXPECT_EQ(Probe(), 200);
  EndWell(std::move(exchange));
  EndWell(std::move(open_exchange));
  EXPECT_EQ(client.Read().code, 200);
  EXPECT_EQ(open_client.Read().code, 200);
}

TEST_F(HttpConnectionTest, AProbeIsAnsweredWhereIdleClientsHaveAllPlaces) {
  std::vector<std::unique_ptr<HttpClient>> served;
  for (size_t i = 0; i < kPlaces; ++i) {
    served.push_back(Served());
    EXPECT_EQ(Probe(), 200) << "beside " << i + 1;
  }
}

TEST_F(HttpConnectionTest, ANewConnectionDoesNotGiveWayToTheNextOne) {
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (size_t i = 0; i < kPlaces; ++i) clients.push_back(Served());
  HttpClient probe(endpoint_->port());
  const std::unique_ptr<HttpClient> next = Served();
  probe.Get("/healthz");
  EXPECT_EQ(probe.Read().code, 200);
  EXPECT_EQ(clients[0]->ReadAll(), "") << "idle for longest";
  ExpectAnswered(*clients.back());
}

TEST_F(HttpConnectionTest, NewConnectionsTakeFewPlacesOfServedOnes) {
  const std::unique_ptr<HttpClient> oldest = Served(), other = Served();
  std::vector<std::unique_ptr<HttpClient>> fresh;
  for (int i = 0; i < 200; ++i) fresh.push_back(std::make_unique<HttpClient>(endpoint_->port()));
  HttpClient probe(endpoint_->port());
  probe.Get("/healthz");
  EXPECT_EQ(probe.Read().code, 200);
  ExpectAnswered(*oldest);
  ExpectAnswered(*other);
}

TEST_F(HttpConnectionTest, ABodyOnItsWayKeepsItsConnectionBesideManyIdleOnes) {
  const std::unique_ptr<HttpClient> client = Sending();
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(i % 2 == 0 ? Served() : Fresh());
  client->Write("x");
  EndWell(AwaitRequest());
  EXPECT_EQ(client->Read().code, 200);
}

TEST_F(HttpConnectionTest, BodiesThatDoNotComeKeepNobodyOut) {
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (size_t i = 0; i < kPlaces; ++i) slow.push_back(Sending());
  HttpClient probe(endpoint_->port());
  const std::unique_ptr<HttpClient> next = Served();
  probe.Get("/healthz");
  EXPECT_EQ(probe.Read().code, 200);
  EXPECT_EQ(slow[0]->ReadAll(), "");
}

TEST_F(HttpConnectionTest, BodiesThatDoNotComeGiveWayBeforeAnOlderRequestInWork) {
  HttpClient client(endpoint_->port());
  client.Post(kPath, "");
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (size_t i = 0; i < kPlaces; ++i) slow.push_back(Sending());
  EndWell(std::move(exchange));
  EXPECT_EQ(client.Read().code, 200);
}

TEST_F(HttpConnectionTest, OpenAnswersThatNobodyTakesKeepNobodyOut) {
  HttpClient client(endpoint_->port());
  client.Post(kPath, "");
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (size_t i = 1; i < kPlaces; ++i) {
    slow.push_back(std::make_unique<HttpClient>(endpoint_->port(), 4096));
    slow.back()->Get(kLargePath, "Connection: close\r\n");
    EXPECT_EQ(slow.back()->Read(/*with_body=*/false).code, 200);
  }
  EXPECT_EQ(Probe(), 200);
  EXPECT_THAT(metrics_.Scrape(),
              HasSubstr("attendant_http_connections_total{result=\"replaced\"} 1\n"));
  EXPECT_LT(slow.front()->ReadAll().size(), kLargeBytes) << "the oldest";
  EXPECT_EQ(slow.back()->ReadAll().size(), kLargeBytes) << "who reads on gets it";
  EndWell(std::move(exchange));
  EXPECT_EQ(client.Read().code, 200);
}

// Two requests that are there at once, of which the first keeps the port's thread busy.
TEST_F(HttpConnectionTest, TheEndOfThePortWaitsForARequestThatItBegins) {
  constexpr absl::Duration kWhile = absl::Milliseconds(50);
  std::atomic<int> pages = 0;
  absl::Notification first_page, second_page, first_may_end, second_may_end, destroyed;
  const auto busy_page = [&] {
    const bool first = ++pages == 1;
    (first ? first_page : second_page).Notify();
    (first ? first_may_end : second_may_end).WaitForNotification();
    return std::string("done");
  };
  absl::Notification handed_over;
  absl::AnyInvocable<void()> request;
  RequestDependencies requests = requests_;
  requests.small_requests = [&](absl::AnyInvocable<void()> work) {
    request = std::move(work);
    handed_over.Notify();
  };
  auto endpoint = *HttpEndpoint::Listen(
      "127.0.0.1:0", metrics_, {.ready = [] { return absl::OkStatus(); }},
      {{.path = "/busy", .content_type = "text/plain", .body = busy_page}},
      {.routes = {MakeHttpRoute("POST", kPath, MethodGroup::kInfer, nullptr, EndWell, {})},
       .requests = &requests,
       .limits = {.max_connections = kMaxRequests}});
  const std::unique_ptr<HttpClient> body = Sending(*endpoint);
  HttpClient first(endpoint->port()), second(endpoint->port());
  first.Get("/busy");
  first_page.WaitForNotification();
  second.Get("/busy");
  body->Write("x");
  first_may_end.Notify();
  second_page.WaitForNotification();
  std::thread end([&] {
    endpoint.reset();
    destroyed.Notify();
  });
  EXPECT_FALSE(destroyed.WaitForNotificationWithTimeout(kWhile)) << "the port's thread is busy";
  second_may_end.Notify();
  handed_over.WaitForNotification();
  EXPECT_FALSE(destroyed.WaitForNotificationWithTimeout(kWhile)) << "the request is in work";
  request();
  end.join();
}

TEST_F(HttpConnectionTest, TheLastAnswersOfAServerEndTheirConnections) {
  HttpClient client(endpoint_->port());
  client.Post(kPath, "");
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(5);
  endpoint_->Close(deadline);
  EXPECT_GE(SteadyNow(), deadline);
  EndExchange(std::move(exchange), absl::OkStatus());
  ASSERT_THAT(client.Read().head, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(HttpConnectionTest, AClientThatClosesCancelsWhateverItHasSentBefore) {
  const std::string kMuch(HttpConnection::kBufferBytes + 1, 'x');  // stays with the system
  for (const std::string& next : {std::string(), std::string("POST"), kMuch}) {
    HttpClient client(endpoint_->port());
    client.Post(kPath, "");
    std::unique_ptr<HttpExchange> exchange = AwaitRequest();
    client.Write(next);
    ExpectAnswered(*Fresh());  // what the client has written is noticed
    EXPECT_FALSE(exchange->state->cancelled());
    client.Close();
    ExpectCancelled(*exchange->state);
    EndWell(std::move(exchange));
    absl::MutexLock lock(&mutex_);
    came_ = 0;
  }
}

TEST_F(HttpConnectionTest, AClientThatEndsItsWritingCancelsAllThatItHasAsked) {
  HttpClient client(endpoint_->port());
  client.Post(kPath, "");
  std::unique_ptr<HttpExchange> first = AwaitRequest();
  client.Post(kPath, "");
  client.EndWriting();
  ExpectCancelled(*first->state);
  EndWell(std::move(first));
  std::unique_ptr<HttpExchange> second = AwaitRequest();
  ExpectCancelled(*second->state);
  EndWell(std::move(second));
  EXPECT_EQ(client.Read().code, 200) << "it may read on";
  EXPECT_EQ(client.Read().code, 200);
}

TEST_F(HttpConnectionTest, TheEndOfAClientDoesNotCancelTheNextOne) {
  for (int i = 0; i < kMaxRequests; ++i) {
    Served()->Close();
    const std::unique_ptr<HttpClient> client = Served();
    client->Post(kPath, "");
    std::unique_ptr<HttpExchange> exchange = AwaitRequest();
    ExpectAnswered(*Fresh());
    EXPECT_FALSE(exchange->state->cancelled());
    EndWell(std::move(exchange));
    EXPECT_EQ(client->Read().code, 200);
  }
}

TEST_F(HttpConnectionTest, ABodyOfAnotherCodingEndsTheConnection) {
  for (const auto& [header, code] : std::vector<std::pair<std::string, int>>{
           {"Transfer-Encoding: xchunked\r\n", 400},
           {"Transfer-Encoding: chunked, identity\r\n", 400},
           {"Transfer-Encoding: gzip, chunked\r\n", 501},
           {"Transfer-Encoding: identity\r\nContent-Length: 5\r\n", 400}}) {
    HttpClient client(endpoint_->port());
    client.Write(absl::StrCat("POST ", kPath, " HTTP/1.1\r\nHost: localhost\r\n", header, "\r\n"));
    client.Get(kOpenPath);
    EXPECT_EQ(client.Read().code, code) << header;
    EXPECT_EQ(client.ReadAll(), "") << "the rest is no request: " << header;
  }
}

TEST_F(HttpConnectionTest, TrailersAreNoHeaders) {
  HttpClient client(endpoint_->port());
  client.Write(absl::StrCat("POST ", kPath,
                            " HTTP/1.1\r\nHost: localhost\r\nX-Model: head\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n",
                            "2\r\nab\r\n0\r\nX-Model: trailer\r\nContent-Encoding: gzip\r\n\r\n"));
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  EXPECT_EQ(exchange->body, "ab");
  EXPECT_EQ(exchange->header("x-model"), "head");
  EXPECT_FALSE(exchange->gzip);
  EndExchange(std::move(exchange), absl::OkStatus());
  EXPECT_EQ(client.Read().code, 200);
}

TEST_F(HttpConnectionTest, ABodyIsAccountedForUntilItsRequestEnds) {
  constexpr size_t kBytes = 50'000;
  HttpClient client(endpoint_->port());
  client.Post(kPath, std::string(kBytes, 'x'));
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  const std::shared_ptr<CallState> state = exchange->state;
  EXPECT_EQ(state->memory().request_bytes(), kBytes) << "it may wait long until a thread reads it";
  EndExchange(std::move(exchange), absl::OkStatus());
  EXPECT_EQ(client.Read().code, 200);
}

#ifdef ATTENDANT_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Opens descriptors until the process may have no more.
std::vector<FileDescriptor> TakeAllDescriptors() {
  std::vector<FileDescriptor> taken;
  while (true) {
    FileDescriptor next(dup(STDERR_FILENO));
    if (!next.valid()) return taken;
    taken.push_back(std::move(next));
  }
}

TEST_F(HttpConnectionTest, WithoutDescriptorsAnIdleConnectionGivesWay) {
  if (kSanitized) GTEST_SKIP() << "UBSan opens a file to look at a type";
  const std::unique_ptr<HttpClient> idle = Served();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    std::vector<FileDescriptor> taken = TakeAllDescriptors();
    taken.pop_back();  // for the client's end
    EXPECT_EQ(Probe(), 200);
    EXPECT_EQ(idle->ReadAll(), "");
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

FileDescriptor NewSocket() { return FileDescriptor(socket(AF_INET, SOCK_STREAM, 0)); }

void Connect(const FileDescriptor& client, uint32_t address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(address);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
}

TEST_F(HttpConnectionTest, WithoutDescriptorsSeveralListenersPause) {
  if (kSanitized) GTEST_SKIP() << "UBSan opens a file to look at a type";
  constexpr int kPauses = 5;
  ListeningSocket both = *ListenOn("127.0.0.1:0");
  ListeningSocket second = *ListenOn("127.0.0.2:0");
  both.fds.push_back(std::move(second.fds.front()));
  const int port = both.port;
  const auto endpoint =
      HttpEndpoint::Listen(std::move(both), metrics_, {.ready = [] { return absl::OkStatus(); }});
  const FileDescriptor clients[] = {NewSocket(), NewSocket()};
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    const std::vector<FileDescriptor> taken = TakeAllDescriptors();
    const std::clock_t start = std::clock();  // the processors' time
    Connect(clients[0], INADDR_LOOPBACK, port);
    Connect(clients[1], INADDR_LOOPBACK + 1, second.port);
    pollfd answer = {clients[0].get(), POLLIN, 0};
    EXPECT_EQ(poll(&answer, 1, kPauses * 100), 0) << "nobody has taken the connection";
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const FileDescriptor& client : clients) {
    constexpr absl::string_view kProbe = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char byte = 0;
    ASSERT_EQ(send(client.get(), kProbe.data(), kProbe.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kProbe.size()));
    EXPECT_EQ(recv(client.get(), &byte, 1, 0), 1) << "it is taken after a pause";
  }
}

TEST_F(HttpConnectionTest, ABodyMayTakeLongerThanAHead) {
  constexpr size_t kBytes = 10000;
  HttpClient client(endpoint_->port());
  client.Write(absl::StrCat(
      "POST ", kPath, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", kBytes, "\r\n\r\n"));
  const absl::Time end = absl::Now() + HttpConnection::Times().head + absl::Milliseconds(500);
  size_t sent = 0;
  while (absl::Now() < end) {
    ASSERT_TRUE(client.Drip('x')) << "after " << sent << " bytes";
    ++sent;
  }
  client.Write(std::string(kBytes - sent, 'x'));
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  EXPECT_EQ(exchange->body, std::string(kBytes, 'x'));
  EXPECT_GE(exchange->arrival - exchange->head_arrival, HttpConnection::Times().head);
  EndExchange(std::move(exchange), absl::OkStatus());
  EXPECT_EQ(client.Read().code, 200);
}

}  // namespace
}  // namespace attendant
