// SPDX-License-Identifier: Apache-2.0
// Connections count once, by what ended them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/http/port/http_endpoint.h"
#include "server/threads/steady_time.h"
#include "tests/server/http/holding_port.h"
#include "tests/server/http/http_client.h"
#include "tests/server/metrics/exposition.h"

namespace attendant {
namespace {

// A connection that has ended is counted soon after its client sees that.
void ExpectEnds(const ServerMetrics& metrics, const std::string& result, double count) {
  const auto counted = [&] {
    return Exposition::Parse(metrics.Scrape())
        ->Value("attendant_http_connections_total", {{"result", result}});
  };
  const absl::Time end = SteadyNow() + absl::Seconds(20);
  while (counted() < count && SteadyNow() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(counted(), count) << result;
}

class ConnectionEndsTest : public HoldingPortTest {};

TEST_F(ConnectionEndsTest, AClientThatHasItsAnswersEndsWell) {
  EXPECT_EQ(Probe(), 200) << "the page ends the connection";
  Served()->Close();
  Fresh()->Close();
  Sending()->Close();
  ExpectEnds(metrics_, "normal", 4);
}

std::atomic<int> signals_taken = 0;

// As libFuzzer's timer sends them.
TEST_F(ConnectionEndsTest, ASignalToAClientThatWaitsEndsNothing) {
  struct sigaction count = {}, before = {};
  count.sa_handler = [](int) { ++signals_taken; };  // without SA_RESTART
  ASSERT_EQ(sigaction(SIGUSR1, &count, &before), 0);
  const std::unique_ptr<HttpClient> client = Fresh();
  client->Post(kPath, "");
  std::unique_ptr<HttpExchange> exchange = AwaitRequest();
  std::thread sender([&, reader = pthread_self()] {
    // Many: the first ones may come before the client waits.
    for (int sent = 1; sent <= 100; ++sent) {
      pthread_kill(reader, SIGUSR1);
      while (signals_taken < sent) std::this_thread::yield();
    }
    EndWell(std::move(exchange));
  });
  EXPECT_EQ(client->Read().code, 200);
  sender.join();
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(ConnectionEndsTest, ASignalToAClientThatDripsIsNoEnd) {
  struct sigaction count = {}, before = {};
  count.sa_handler = [](int) { ++signals_taken; };
  ASSERT_EQ(sigaction(SIGUSR1, &count, &before), 0);
  const std::unique_ptr<HttpClient> client = Fresh();
  std::atomic<bool> dripped = false;
  std::thread sender([&, reader = pthread_self()] {
    while (!dripped) pthread_kill(reader, SIGUSR1);
  });
  for (const int taken = signals_taken; signals_taken == taken;) std::this_thread::yield();
  for (const char byte : std::string("GET")) EXPECT_TRUE(client->Drip(byte));
  dripped = true;
  sender.join();
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(ConnectionEndsTest, AnIdleConnectionIsReplaced) {
  std::vector<std::unique_ptr<HttpClient>> served;
  for (size_t i = 0; i < kPlaces + 2; ++i) served.push_back(Served());
  ExpectEnds(metrics_, "replaced", 2);
}

TEST_F(ConnectionEndsTest, WhatIsNoHttpRequestIsMalformed) {
  int sent = 0;
  for (const std::string& text :
       {std::string("GET\r\n\r\n"), std::string("GET /healthz HTTP/1.1\r\n\r\n"),
        "GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n"}) {
    HttpClient client(endpoint_->port());
    client.Write(text);
    EXPECT_GE(client.Read().code, 400);
    client.Close();
    ExpectEnds(metrics_, "malformed", ++sent);
  }
  ExpectEnds(metrics_, "normal", 0);
}

TEST_F(ConnectionEndsTest, AForeignWebPageIsCounted) {
  HttpClient client(endpoint_->port());
  client.Write("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(client.Read().code, 403);
  client.Close();
  ExpectEnds(metrics_, "foreign_page", 1);
}

constexpr absl::Duration kShort = absl::Milliseconds(50);
constexpr int kTries = 100;  // of this process, to get the processor in time

// Each test shortens the one time that it waits for.
class SlowHeadTest : public HoldingPortTest {
 protected:
  // Also for the one client that is quick enough, on a busy machine.
  SlowHeadTest() : HoldingPortTest({.head = 10 * kShort}) {}

  // A client that is quick enough, or nullptr. While the machine stands still, a client is not.
  std::unique_ptr<HttpClient> Quick() {
    int code = 0;
    for (; code == 0 && too_slow_ < kTries; ++too_slow_) {
      std::unique_ptr<HttpClient> client = Fresh();
      client->Get(kOpenPath);
      code = client->Read().code;
      if (code == 200) return client;
    }
    ADD_FAILURE() << "after " << too_slow_ << " tries the answer has code " << code;
    return nullptr;
  }

  int too_slow_ = 0;
};

TEST_F(SlowHeadTest, NoWholeHeadInTime) {
  const std::unique_ptr<HttpClient> served = Quick();
  ASSERT_NE(served, nullptr);
  HttpClient silent(endpoint_->port()), slow(endpoint_->port());
  slow.Write("GET /healthz HT");
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(slow.ReadAll(), "");
  ExpectEnds(metrics_, "slow_head", 2 + too_slow_);
  ExpectAnswered(*served);
}

class IdleTest : public HoldingPortTest {
 protected:
  IdleTest() : HoldingPortTest({.idle = kShort}) {}
};

TEST_F(IdleTest, NoFurtherRequestInTime) {
  EXPECT_EQ(Served()->ReadAll(), "");
  ExpectEnds(metrics_, "idle", 1);
}

class SlowBodyTest : public HoldingPortTest {
 protected:
  SlowBodyTest() : HoldingPortTest({.body = kShort}) {}
};

TEST_F(SlowBodyTest, NoWholeBodyInTime) {
  EXPECT_EQ(Sending()->ReadAll(), "");
  ExpectEnds(metrics_, "slow_body", 1);
}

// Of a body that is too long: the answer is there before it is sent.
constexpr char kLongBody[] =
    "POST /hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n";

class LingeringTest : public HoldingPortTest {
 protected:
  static constexpr absl::Duration kClose = absl::Milliseconds(500);
  LingeringTest() : HoldingPortTest({.close = kClose}) {}

  struct Sent {
    bool all = true;
    absl::Duration longest_write;
  };
  // Sends a part of the body for twice the time to close, or until the server has closed.
  static Sent SendBody(HttpClient& client) {
    Sent sent;
    absl::Time last = SteadyNow();
    const absl::Time end = last + 2 * kClose;
    client.Write(kLongBody);
    while (sent.all && last < end) {
      sent.all = client.TryWrite("more");
      const absl::Time now = SteadyNow();
      sent.longest_write = std::max(sent.longest_write, now - last);
      last = now;
    }
    return sent;
  }
};

TEST_F(LingeringTest, AClientThatSendsOnBeforeItReadsHasItsAnswer) {
  bool steady = false;
  absl::Duration longest_write;
  for (int clients = 1; !steady && clients <= kTries; ++clients) {
    HttpClient client(endpoint_->port());
    const Sent sent = SendBody(client);
    longest_write = sent.longest_write;
    // What two writes send may come as far apart as both take. On a machine that stood still for so
    // long the server may close: then another client shows it.
    steady = 2 * longest_write < kClose;
    if (steady) {
      EXPECT_TRUE(sent.all);
      EXPECT_EQ(client.Read().code, 413);
    }
    client.Close();
    ExpectEnds(metrics_, "normal", clients);
  }
  EXPECT_TRUE(steady) << "the last client's longest write took " << longest_write;
}

class ShortLingeringTest : public HoldingPortTest {
 protected:
  ShortLingeringTest() : HoldingPortTest({.body = kShort}) {}
};

TEST_F(ShortLingeringTest, WhoNeverEndsIsClosed) {
  HttpClient client(endpoint_->port());
  client.Write(kLongBody);
  while (client.TryWrite("more")) {
  }
  ExpectEnds(metrics_, "normal", 1);
}

TEST(SlowReaderTest, TheAnswerIsNotTakenInTime) {
  ServerMetrics metrics("test");
  const auto endpoint =
      *HttpEndpoint::Listen("127.0.0.1:0", metrics, {.ready = [] { return absl::OkStatus(); }},
                            {{.path = "/long",
                              .content_type = "x/y",
                              .body = [] { return std::string(size_t{1} << 24, 'x'); }}},
                            {.times = {.page = kShort}});
  HttpClient client(endpoint->port());
  client.Get("/long");
  ExpectEnds(metrics, "slow_reader", 1);
}

}  // namespace
}  // namespace attendant
