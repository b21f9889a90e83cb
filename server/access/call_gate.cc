// SPDX-License-Identifier: Apache-2.0
#include "server/access/call_gate.h"

#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace attendant {
namespace {

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// "Bearer KEY", as RFC 6750 has it; the word in any case.
absl::string_view BearerKey(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return {};
  return absl::StripAsciiWhitespace(authorization.substr(kScheme.size()));
}

// Whether the server said no; any other error is one of the network or of the computation.
bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kInvalidArgument ||
         code == absl::StatusCode::kResourceExhausted ||
         code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied;
}

}  // namespace

CallGate::CallGate(ServerMetrics& metrics, const KeyStore* keys, AccessLog* log)
    : metrics_(metrics), keys_(keys), log_(log), ids_(RandomSeed()) {}

CallGate::Entry CallGate::Enter(const CallHead& head) {
  const absl::StatusOr<std::string> key = Authorize(head);
  const std::shared_ptr<const CallInfo> call(
      new CallInfo{.method = head.method,
                   .connection = OpenCall(connections_, head.peer),
                   .key = key.ok() ? *key : "",
                   .request_id = RequestId(head),
                   .trace = Trace(head)});
  if (!key.ok()) Refused(*call, key.status());
  return {call, key.status()};
}

absl::StatusOr<std::string> CallGate::Authorize(const CallHead& head) const {
  if (keys_ == nullptr || head.method.group == MethodGroup::kOpen) return std::string();
  absl::string_view key = BearerKey(head.header("authorization").value_or(""));
  if (key.empty()) key = head.header("x-api-key").value_or("");
  return keys_->Authorize(key, head.method.group);
}

std::string CallGate::RequestId(const CallHead& head) {
  const absl::string_view sent = head.header("x-request-id").value_or("");
  if (IsRequestId(sent)) return std::string(sent);
  if (!logging()) return "";
  return absl::StrCat(absl::Hex(ids_.Next(), absl::kZeroPad16),
                      absl::Hex(ids_.Next(), absl::kZeroPad16));
}

std::optional<TraceContext> CallGate::Trace(const CallHead& head) {
  const std::optional<absl::string_view> parent = head.header("traceparent");
  if (!parent.has_value()) return std::nullopt;
  std::optional<TraceContext> trace =
      ParseTraceContext(*parent, head.header("tracestate").value_or(""));
  if (trace.has_value()) trace->span = ids_.Next();
  return trace;
}

void CallGate::Refused(const CallInfo& call, const absl::Status& status) {
  metrics_.CountRefused(absl::IsPermissionDenied(status) ? Refusal::kPermissionDenied
                                                         : Refusal::kUnauthenticated);
  call.connection.Count({.refused = 1});
  Log(call, {.code = status.code()});
}

void CallGate::Ended(const CallInfo& call, const CallEnd& end) {
  call.connection.Count({.requests = 1,
                         .request_bytes = end.request_bytes,
                         .response_bytes = end.response_bytes,
                         .refused = IsRefusal(end.code) ? 1 : 0});
  // Probes come every second: only their errors are worth a line.
  if (call.method.group != MethodGroup::kOpen || end.code != absl::StatusCode::kOk) Log(call, end);
}

void CallGate::Log(const CallInfo& call, const CallEnd& end) {
  if (log_ == nullptr || !log_->Wants(end.code)) return;
  log_->Add({.time = absl::Now() - end.total,
             .request_id = call.request_id,
             .trace_id = call.trace.has_value() ? call.trace->trace_id() : "",
             .span_id = call.trace.has_value() ? call.trace->span_id() : "",
             .peer = call.connection.peer(),
             .key = call.key,
             .method = call.method.name,
             .model = std::string(end.model.substr(0, kMaxLoggedModelBytes)),
             .message_id = std::string(end.message_id),
             .code = end.code,
             .sequences = end.sequences,
             .tokens = end.tokens,
             .request_bytes = end.request_bytes,
             .response_bytes = end.response_bytes,
             .total = end.total,
             .tokenize = end.tokenize,
             .queue = end.queue,
             .compute = end.compute,
             .serialize = end.serialize});
}

}  // namespace attendant
