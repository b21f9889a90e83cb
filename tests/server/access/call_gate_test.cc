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
#include "server/tracing/export/tracer.h"
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
const CallMethod kUnknown{.name = "a.Encoder/Decode", .group = MethodGroup::kOpen, .unknown = true};

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

TEST_F(CallGateTest, AClientIsAKeyOrAConnection) {
  WriteFile(keys_path_, std::string(kKey) + " search infer\n0123456789abcdeg import infer\n");
  ASSERT_TRUE(*keys_->Reload());
  CallGate open(metrics_);
  CallGate closed(metrics_, keys_.get());
  const auto client = [](CallGate& gate, const std::string& peer, const std::string& key) {
    return gate
        .Enter({.method = kEncode,
                .peer = peer,
                .header =
                    [&](absl::string_view name) {
                      return name == "x-api-key" ? std::optional<absl::string_view>(key)
                                                 : std::nullopt;
                    }})
        .call->client;
  };
  EXPECT_EQ(client(open, "ipv4:10.0.0.1:5", kKey), client(open, "ipv4:10.0.0.1:5", "another"));
  EXPECT_NE(client(open, "ipv4:10.0.0.1:5", kKey), client(open, "ipv4:10.0.0.1:6", kKey));
  EXPECT_EQ(client(closed, "ipv4:10.0.0.1:5", kKey), client(closed, "ipv4:10.0.0.1:6", kKey));
  EXPECT_NE(client(closed, "ipv4:10.0.0.1:5", kKey),
            client(closed, "ipv4:10.0.0.1:5", "0123456789abcdeg"));
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

TEST_F(CallGateTest, LooksAtTheKeyOfAnOpenCallAgain) {
  CallGate gate(metrics_, keys_.get(), log_.get());
  const CallGate::Entry entry = Enter(gate, kEncode, {{"x-api-key", kKey}});
  const CallGate::Entry open = Enter(gate, kHealth);
  EXPECT_TRUE(gate.Recheck(*entry.call).ok());
  WriteFile(keys_path_, std::string(kKey) + " renamed infer\n");
  ASSERT_TRUE(*keys_->Reload());
  EXPECT_TRUE(gate.Recheck(*entry.call).ok());
  WriteFile(keys_path_, "0123456789abcdeg other infer\n");
  ASSERT_TRUE(*keys_->Reload());
  EXPECT_EQ(Refused("unauthenticated"), 0);
  EXPECT_EQ(gate.Recheck(*entry.call).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Refused("unauthenticated"), 1);
  EXPECT_THAT(LogText(), HasSubstr(R"("key":"search","method":"a.Encoder/Encode")"));
  EXPECT_TRUE(gate.Recheck(*open.call).ok());
  EXPECT_TRUE(CallGate(metrics_).Recheck(*Enter(gate, kHealth).call).ok());
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
  EXPECT_EQ(Enter(gate, kUnknown).status,
            absl::UnimplementedError("there is no method a.Encoder/Decode"));
  EXPECT_EQ(Refused("unauthenticated"), 3);
  EXPECT_EQ(Refused("permission_denied"), 1);
  EXPECT_EQ(Refused("unknown_method"), 1);
  ASSERT_EQ(gate.connections().Report().size(), 1u);
  EXPECT_EQ(gate.connections().Report()[0].last_minute.refused, 5);
  EXPECT_EQ(gate.connections().Report()[0].last_minute.requests, 0);
}

TEST_F(CallGateTest, AConnectionOfTooManyCallsIsRefused) {
  CallGate gate(metrics_, nullptr, nullptr, nullptr, /*max_calls=*/3);
  std::vector<CallGate::Entry> open;
  for (int i = 0; i < 2 * 3 + 64; ++i) open.push_back(Enter(gate, kEncode));
  EXPECT_TRUE(open.back().status.ok());
  const absl::Status refused = Enter(gate, kEncode).status;
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "the connection has 71 open calls, the limit is 3 (--max_connection_calls)");
  EXPECT_EQ(Refused("connection_calls"), 1);
  open.pop_back();
  EXPECT_TRUE(Enter(gate, kEncode).status.ok()) << "one has ended";
}

// Only this refusal frees a call whose client takes no answer. It tells nothing about the key.
TEST_F(CallGateTest, TooManyCallsAreRefusedWhateverTheirKeys) {
  CallGate gate(metrics_, keys_.get(), log_.get(), nullptr, /*max_calls=*/1);
  std::vector<CallGate::Entry> open;
  for (int i = 0; i < 2 * 1 + 64; ++i) open.push_back(Enter(gate, kHealth));
  const absl::Status refused = Enter(gate, kEncode, {{"x-api-key", kKey}}).status;
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(Enter(gate, kEncode).status, refused);
  EXPECT_EQ(Enter(gate, kLoad, {{"x-api-key", kKey}}).status, refused);
  EXPECT_EQ(Enter(gate, kUnknown).status, refused);
  EXPECT_EQ(Refused("connection_calls"), 4);
  EXPECT_THAT(LogText(), HasSubstr(R"("key":"search","method":"a.Encoder/Encode")"));
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

// A collector that takes all, and keeps the spans' names and ids.
class Transport final : public SpanTransport {
 public:
  explicit Transport(std::vector<nlohmann::json>& spans) : spans_(spans) {}
  absl::StatusOr<Answer> Post(absl::string_view json, absl::Duration) override {
    const auto request = nlohmann::json::parse(json.begin(), json.end());
    for (const auto& span : request["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
      spans_.push_back(span);
    }
    return Answer{.code = 200};
  }
  void Cancel() override {}

 private:
  std::vector<nlohmann::json>& spans_;
};

class CallGateTracesTest : public CallGateTest {
 protected:
  std::unique_ptr<Tracer> MakeTracer(const Sampler& sampler = Sampler()) {
    return std::make_unique<Tracer>(Tracer::Options{.sampler = sampler, .delay = absl::Hours(1)},
                                    std::make_unique<Transport>(spans_), metrics_);
  }
  // The spans so far.
  const std::vector<nlohmann::json>& Spans(Tracer& tracer) {
    EXPECT_TRUE(tracer.Flush(absl::Seconds(30)));
    return spans_;
  }

  const std::map<std::string, std::string> caller_ = {{"traceparent", kTraceParent}};
  std::vector<nlohmann::json> spans_;
};

TEST_F(CallGateTracesTest, ARequestIsAChildOfItsCaller) {
  const auto tracer = MakeTracer();
  CallGate gate(metrics_, nullptr, nullptr, tracer.get());
  const CallGate::Entry entry = Enter(gate, kEncode, caller_);
  EXPECT_EQ(gate.RequestSpan(*entry.call), entry.call->trace->span);
  gate.Ended(*entry.call, {.model = "m", .message_id = "id", .tokens = 7});
  const auto& spans = Spans(*tracer);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(spans[0]["parentSpanId"], "00f067aa0ba902b7");
  EXPECT_EQ(spans[0]["spanId"], entry.call->trace->span_id());
  EXPECT_EQ(spans[0]["name"], "a.Encoder/Encode");
  EXPECT_THAT(spans[0]["attributes"].dump(), HasSubstr("\"127.0.0.1\""));
}

TEST_F(CallGateTracesTest, WithoutACallerATraceBegins) {
  const auto tracer = MakeTracer();
  CallGate gate(metrics_, nullptr, nullptr, tracer.get());
  const CallGate::Entry first = Enter(gate, kEncode), second = Enter(gate, kEncode);
  ASSERT_TRUE(first.call->trace.has_value() && second.call->trace.has_value());
  EXPECT_NE(first.call->trace->trace_id(), second.call->trace->trace_id());
  EXPECT_TRUE(first.call->trace->sampled);
  gate.Ended(*first.call, {});
  const auto& spans = Spans(*tracer);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["traceId"], first.call->trace->trace_id());
  EXPECT_FALSE(spans[0].contains("parentSpanId"));
}

TEST_F(CallGateTracesTest, SpansOfTheSampleOnly) {
  const auto tracer = MakeTracer(Sampler(0, /*follows_caller=*/true));
  CallGate gate(metrics_, nullptr, nullptr, tracer.get());
  const CallGate::Entry entry = Enter(gate, kEncode);
  EXPECT_FALSE(entry.call->trace->sampled);
  EXPECT_EQ(gate.RequestSpan(*entry.call), 0u);
  gate.Ended(*entry.call, {});
  EXPECT_EQ(Spans(*tracer).size(), 0u);
  gate.Ended(*Enter(gate, kEncode, caller_).call, {});
  EXPECT_EQ(Spans(*tracer).size(), 1u);
}

TEST_F(CallGateTracesTest, EveryMessageOfAStreamHasASpanOfItsOwn) {
  const CallMethod stream{
      .name = "a.Encoder/Stream", .group = MethodGroup::kInfer, .streams = true};
  const auto tracer = MakeTracer();
  CallGate gate(metrics_, nullptr, log_.get(), tracer.get());
  std::string stream_id;
  {
    const CallGate::Entry entry = Enter(gate, stream, caller_);
    stream_id = entry.call->trace->span_id();
    const uint64_t span = gate.RequestSpan(*entry.call);
    EXPECT_NE(span, entry.call->trace->span);
    EXPECT_NE(span, gate.RequestSpan(*entry.call));
    gate.Ended(*entry.call, {.span = span});
    gate.Ended(*entry.call, {});
    EXPECT_EQ(Spans(*tracer).size(), 2u) << "the stream goes on";
  }
  const auto& spans = Spans(*tracer);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["parentSpanId"], stream_id);
  EXPECT_EQ(spans[1]["parentSpanId"], stream_id);
  EXPECT_NE(spans[0]["spanId"], spans[1]["spanId"]);
  EXPECT_EQ(spans[2]["spanId"], stream_id);
  EXPECT_EQ(spans[2]["name"], "a.Encoder/Stream");
  EXPECT_EQ(spans[2]["parentSpanId"], "00f067aa0ba902b7");
  const std::string text = LogText();
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line["span_id"], spans[0]["spanId"]) << "the log has the message's";
}

TEST_F(CallGateTracesTest, ProbesAndRefusedCallsHaveNone) {
  const auto tracer = MakeTracer();
  CallGate gate(metrics_, keys_.get(), nullptr, tracer.get());
  EXPECT_EQ(Enter(gate, kEncode, caller_).status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(Enter(gate, kHealth).call->trace.has_value());
  gate.Ended(*Enter(gate, kHealth, caller_).call, {});
  EXPECT_EQ(Spans(*tracer).size(), 0u);
  gate.Ended(*Enter(gate, kHealth, caller_).call, {.code = absl::StatusCode::kNotFound});
  EXPECT_EQ(Spans(*tracer).size(), 1u);
}

}  // namespace
}  // namespace attendant
