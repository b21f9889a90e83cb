// SPDX-License-Identifier: Apache-2.0
#include "server/access/call_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/base/regular_file.h"
#include "nlohmann/json.hpp"
#include "tests/server/metrics/exposition.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kKey[] = "0123456789abcdef";
constexpr char kTraceParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const CallMethod kEncode{"a.Encoder/Encode", MethodGroup::kInfer};
const CallMethod kLoad{"a.Repository/Load", MethodGroup::kAdmin};
const CallMethod kHealth{"a.Health/Check", MethodGroup::kOpen};

class CallGateTest : public testing::Test {
 protected:
  CallGateTest() {
    WriteFile(keys_path_, std::string(kKey) + " search infer\n");
    keys_ = *KeyStore::Open(keys_path_);
    log_ = std::make_unique<AccessLog>(*LogFile::Open(log_path_), AccessLog::Options(), metrics_);
  }

  static CallGate::Entry Enter(CallGate& gate, const CallMethod& method,
                               const std::map<std::string, std::string>& headers = {}) {
    const auto header = [&](absl::string_view name) -> std::optional<absl::string_view> {
      const auto found = headers.find(std::string(name));
      if (found == headers.end()) return std::nullopt;
      return found->second;
    };
    return gate.Enter({.method = method, .peer = "ipv4:127.0.0.1:5", .header = header});
  }
  double Refused(const std::string& reason) {
    const auto scrape = Exposition::Parse(metrics_.Scrape());
    return scrape->Value("attendant_refused_total", {{"reason", reason}});
  }
  std::string LogText() {
    log_->Flush(absl::Seconds(30));
    return *ReadTextFile(log_path_, 1 << 20);
  }

  ServerMetrics metrics_{"1.2.3"};
  TempDirectory directory_;
  const std::string keys_path_ = directory_ / "keys";
  const std::string log_path_ = directory_ / "access.log";
  std::unique_ptr<KeyStore> keys_;
  std::unique_ptr<AccessLog> log_;
};

TEST_F(CallGateTest, WithoutKeysAnybodyMayCall) {
  CallGate gate(metrics_);
  EXPECT_TRUE(Enter(gate, kLoad).status.ok());
  EXPECT_EQ(Enter(gate, kLoad, {{"x-api-key", "wrong"}}).call->key, "");
}

TEST_F(CallGateTest, TakesBothHeaders) {
  CallGate gate(metrics_, keys_.get());
  const std::string key = kKey;
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"authorization", "Bearer " + key}, {"x-api-key", key}}) {
    const CallGate::Entry entry = Enter(gate, kEncode, {{name, value}});
    EXPECT_TRUE(entry.status.ok()) << name;
    EXPECT_EQ(entry.call->key, "search");
  }
  EXPECT_TRUE(Enter(gate, kEncode, {{"authorization", "bearer  " + key}}).status.ok());
  EXPECT_TRUE(
      Enter(gate, kEncode, {{"authorization", "Basic dTpw"}, {"x-api-key", key}}).status.ok());
}

TEST_F(CallGateTest, RefusesAndCounts) {
  CallGate gate(metrics_, keys_.get());
  const std::map<std::string, std::string> headers = {{"x-api-key", kKey}};
  EXPECT_EQ(Enter(gate, kEncode).status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Enter(gate, kEncode, {{"authorization", kKey}}).status.code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Enter(gate, kEncode, {{"x-api-key", "0123456789abcdeF"}}).status.code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Enter(gate, kLoad, headers).status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Enter(gate, kHealth).status.ok());
  EXPECT_EQ(Refused("unauthenticated"), 3);
  EXPECT_EQ(Refused("permission_denied"), 1);
  ASSERT_EQ(gate.connections().Report().size(), 1u);
  EXPECT_EQ(gate.connections().Report()[0].last_minute.refused, 4);
  EXPECT_EQ(gate.connections().Report()[0].last_minute.requests, 0);
}

TEST_F(CallGateTest, TheRequestIdIsTheClients) {
  CallGate gate(metrics_);
  EXPECT_EQ(Enter(gate, kEncode, {{"x-request-id", "mine"}}).call->request_id, "mine");
  EXPECT_EQ(Enter(gate, kEncode, {{"x-request-id", "\n"}}).call->request_id, "");
  EXPECT_EQ(Enter(gate, kEncode).call->request_id, "");
}

TEST_F(CallGateTest, WithALogEveryCallHasAnId) {
  CallGate gate(metrics_, nullptr, log_.get());
  const std::string first = Enter(gate, kEncode).call->request_id;
  const std::string second = Enter(gate, kEncode, {{"x-request-id", "\n"}}).call->request_id;
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(second.size(), 32u);
  EXPECT_NE(first, second);
}

TEST_F(CallGateTest, TheServersSpanIsAChild) {
  CallGate gate(metrics_);
  EXPECT_FALSE(Enter(gate, kEncode).call->trace.has_value());
  EXPECT_FALSE(Enter(gate, kEncode, {{"traceparent", "00-1-2-3"}}).call->trace.has_value());
  EXPECT_FALSE(Enter(gate, kEncode, {{"tracestate", "a=1"}}).call->trace.has_value());
  const CallGate::Entry entry =
      Enter(gate, kEncode, {{"traceparent", kTraceParent}, {"tracestate", "a=1"}});
  ASSERT_TRUE(entry.call->trace.has_value());
  EXPECT_EQ(entry.call->trace->trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_NE(entry.call->trace->span_id(), "00f067aa0ba902b7");
  EXPECT_EQ(entry.call->trace->state, "a=1");
}

TEST_F(CallGateTest, LogsRequestsAndRefusalsButNoKey) {
  CallGate gate(metrics_, keys_.get(), log_.get());
  const CallGate::Entry entry = Enter(
      gate, kEncode, {{"x-api-key", kKey}, {"x-request-id", "r1"}, {"traceparent", kTraceParent}});
  const std::string model(200, 'm');
  gate.Ended(
      *entry.call,
      {.model = model, .message_id = "m1", .tokens = 7, .request_bytes = 11, .response_bytes = 13});
  Enter(gate, kLoad, {{"x-api-key", kKey}, {"x-request-id", "r2"}});
  Enter(gate, kEncode, {{"x-api-key", "a-wrong-key-of-a-client"}, {"x-request-id", "r3"}});
  const std::string text = LogText();
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line["request_id"], "r1");
  EXPECT_EQ(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(line["span_id"], entry.call->trace->span_id());
  EXPECT_EQ(line["key"], "search");
  EXPECT_EQ(line["method"], "a.Encoder/Encode");
  EXPECT_EQ(line["model"], std::string(128, 'm'));
  EXPECT_EQ(line["id"], "m1");
  EXPECT_EQ(line["code"], "OK");
  EXPECT_THAT(text, HasSubstr(R"("request_id":"r2")"));
  EXPECT_THAT(text, HasSubstr(R"("code":"PERMISSION_DENIED")"));
  EXPECT_THAT(text, HasSubstr(R"("request_id":"r3")"));
  EXPECT_THAT(text, HasSubstr(R"("code":"UNAUTHENTICATED")"));
  EXPECT_THAT(text, Not(HasSubstr(kKey)));
  EXPECT_THAT(text, Not(HasSubstr("a-wrong-key")));
}

TEST_F(CallGateTest, CountsWhatAConnectionDid) {
  CallGate gate(metrics_);
  const CallGate::Entry entry = Enter(gate, kEncode);
  gate.Ended(*entry.call, {.request_bytes = 11, .response_bytes = 13});
  gate.Ended(*entry.call, {.code = absl::StatusCode::kResourceExhausted, .request_bytes = 11});
  gate.Ended(*entry.call, {.code = absl::StatusCode::kCancelled});
  const Activity activity = gate.connections().Report().at(0).last_minute;
  EXPECT_EQ(activity.requests, 3);
  EXPECT_EQ(activity.request_bytes, 22);
  EXPECT_EQ(activity.response_bytes, 13);
  EXPECT_EQ(activity.refused, 1);
}

TEST_F(CallGateTest, ManyThreadsWhileKeysChange) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  CallGate gate(metrics_, keys_.get(), log_.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        const CallGate::Entry entry = Enter(gate, kEncode, {{"x-api-key", kKey}});
        EXPECT_TRUE(entry.status.ok()) << entry.status;
        gate.Ended(*entry.call, {.request_bytes = 1});
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    WriteFile(keys_path_ + ".next", absl::StrCat(kKey, " search infer\n# ", i, "\n"));
    ASSERT_EQ(std::rename((keys_path_ + ".next").c_str(), keys_path_.c_str()), 0);
    EXPECT_TRUE(keys_->Reload().value());
    EXPECT_LE(gate.connections().Report().size(), 1u);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gate.connections().Report().at(0).last_minute.requests, kThreads * kCalls);
  EXPECT_EQ(gate.connections().Report().at(0).open_calls, 0);
}

TEST_F(CallGateTest, ProbesAreLoggedWhenTheyFail) {
  CallGate gate(metrics_, nullptr, log_.get());
  const CallGate::Entry entry = Enter(gate, kHealth);
  gate.Ended(*entry.call, {});
  gate.Ended(*entry.call, {.code = absl::StatusCode::kNotFound});
  const std::string text = LogText();
  EXPECT_THAT(text, HasSubstr("NOT_FOUND"));
  EXPECT_THAT(text, Not(HasSubstr("OK")));
}

}  // namespace
}  // namespace attendant
