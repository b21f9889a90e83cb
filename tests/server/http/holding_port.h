// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/http/port/http_endpoint.h"
#include "server/metrics/server_metrics.h"
#include "server/models/registry/model_registry.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/threads/steady_time.h"
#include "tests/server/http/http_client.h"

namespace attendant {

inline constexpr char kPath[] = "/hold";
inline constexpr char kOpenHoldPath[] = "/open-hold";
inline constexpr char kOpenPath[] = "/open";
inline constexpr char kLargePath[] = "/large";
inline constexpr int kMaxRequests = 2;
inline constexpr size_t kPlaces = kMaxRequests + HttpLimits::kPageConnections;

inline void EndWell(std::unique_ptr<HttpExchange> exchange) {
  EndExchange(std::move(exchange), absl::OkStatus());
}

// An answer's, so many that no socket's buffers hold them.
inline constexpr size_t kLargeBytes = 4 << 20;

// A port with a route which has two requests in work at most, and three open ones, of which one has
// a large answer. The requests of the first and of kOpenHoldPath wait until the test ends them.
class HoldingPortTest : public testing::Test {
 protected:
  explicit HoldingPortTest(HttpConnection::Times times = {}) {
    const auto error = [](const HttpFailure& failure) {
      return HttpResponse{.code = failure.code};
    };
    const auto hold = [this](std::unique_ptr<HttpExchange> exchange) {
      absl::MutexLock lock(&mutex_);
      if (++came_ > kMaxRequests) return EndExchange(std::move(exchange), absl::OkStatus());
      held_.push_back(std::move(exchange));
    };
    const auto end_large = [](std::unique_ptr<HttpExchange> exchange) {
      exchange->response.body = std::string(kLargeBytes, 'x');
      EndWell(std::move(exchange));
    };
    endpoint_ = *HttpEndpoint::Listen(
        "127.0.0.1:0", metrics_, {.ready = [] { return absl::OkStatus(); }}, {},
        {.routes = {MakeHttpRoute("POST", kPath, MethodGroup::kInfer, error, hold, {}),
                    MakeHttpRoute("GET", kOpenHoldPath, MethodGroup::kOpen, error, hold, {}),
                    MakeHttpRoute("GET", kOpenPath, MethodGroup::kOpen, error, EndWell, {}),
                    MakeHttpRoute("GET", kLargePath, MethodGroup::kOpen, error, end_large, {})},
         .requests = &requests_,
         .limits = {.max_connections = kMaxRequests},
         .times = times});
  }

  // The request that came first of those at the route.
  std::unique_ptr<HttpExchange> AwaitRequest() {
    const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !held_.empty(); };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
    std::unique_ptr<HttpExchange> exchange = std::move(held_.front());
    held_.pop_front();
    return exchange;
  }

  std::unique_ptr<HttpClient> Fresh() { return std::make_unique<HttpClient>(endpoint_->port()); }
  static void ExpectAnswered(HttpClient& client) {
    client.Get(kOpenPath);
    EXPECT_EQ(client.Read().code, 200);
  }
  // Waits with its connection for the next request.
  std::unique_ptr<HttpClient> Served() {
    std::unique_ptr<HttpClient> client = Fresh();
    ExpectAnswered(*client);
    return client;
  }
  static void ExpectCancelled(const CallState& state) {
    const absl::Time end = SteadyNow() + absl::Seconds(20);
    while (!state.cancelled() && SteadyNow() < end) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_TRUE(state.cancelled());
  }
  // The code of a probe's answer, which has a connection of its own.
  int Probe(const std::string& path = "/healthz") { return HttpGet(endpoint_->port(), path).code; }
  // Has a body of one byte to send, which the server waits for.
  std::unique_ptr<HttpClient> Sending() { return Sending(*endpoint_); }
  static std::unique_ptr<HttpClient> Sending(const HttpEndpoint& endpoint) {
    auto client = std::make_unique<HttpClient>(endpoint.port());
    client->Write(absl::StrCat("POST ", kPath,
                               " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                               "Content-Length: 1\r\n\r\n"));
    EXPECT_EQ(client->Read().code, 100);
    return client;
  }

  ServerMetrics metrics_{"test"};
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  const Executor executor_ = [](absl::AnyInvocable<void()> work) { work(); };
  ModelWaits waits_;
  ModelRegistry models_{nullptr, metrics_, executor_};
  const RequestDependencies requests_{models_, metrics_, budgets_, gate_,
                                      waits_,  nullptr,  nullptr,  executor_};
  absl::Mutex mutex_;
  int came_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::unique_ptr<HttpExchange>> held_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpEndpoint> endpoint_;
};

}  // namespace attendant
