// SPDX-License-Identifier: Apache-2.0
#include "server/access/call_gate.h"

#include <random>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "server/threads/steady_time.h"

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

Refusal RefusalOf(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return Refusal::kConnectionCalls;
  if (absl::IsUnimplemented(status)) return Refusal::kUnknownMethod;
  return absl::IsPermissionDenied(status) ? Refusal::kPermissionDenied : Refusal::kUnauthenticated;
}

// Probes come every second.
bool IsProbe(const CallMethod& method) {
  return method.routine || method.group == MethodGroup::kOpen;
}

std::optional<TraceContext> CallerOf(const CallHead& head) {
  const std::optional<absl::string_view> parent = head.header("traceparent");
  if (!parent.has_value()) return std::nullopt;
  return ParseTraceContext(*parent, head.header("tracestate").value_or(""));
}

// `span` is the request's own, or 0.
std::string SpanIdOf(const CallInfo& call, uint64_t span) {
  if (!call.trace.has_value()) return "";
  return span == 0 ? call.trace->span_id() : absl::StrCat(absl::Hex(span, absl::kZeroPad16));
}

}  // namespace

CallGate::CallGate(ServerMetrics& metrics, const KeyStore* keys, AccessLog* log, Tracer* tracer,
                   int64_t max_calls)
    : metrics_(metrics),
      keys_(keys),
      log_(log),
      tracer_(tracer),
      max_calls_(max_calls),
      ids_(RandomSeed()) {}

CallGate::Entry CallGate::Enter(const CallHead& head) {
  const absl::StatusOr<KeyStore::Grant> key = Authorize(head);
  const std::shared_ptr<CallInfo> call(new CallInfo{.method = head.method,
                                                    .connection = OpenCall(connections_, head.peer),
                                                    .key = key.ok() ? key->name : "",
                                                    .request_id = RequestId(head),
                                                    .trace = Trace(head)});
  call->client = absl::HashOf(call->key.empty() ? head.peer : call->key);
  absl::Status status = CheckCalls(call->connection);
  if (status.ok()) status = key.status();
  if (status.ok()) {
    call->key_digest = key->digest;
    call->key_generation = key->generation;
    call->stream_span = OpenStream(*call);
  } else {
    Refused(*call, status);
  }
  return {call, status};
}

absl::Status CallGate::Recheck(const CallInfo& call) {
  if (call.key.empty() || call.key_generation == keys_->generation()) return absl::OkStatus();
  const absl::StatusOr<KeyStore::Grant> key = keys_->Authorize(call.key_digest, call.method.group);
  if (key.ok()) {
    call.key_generation = key->generation;
  } else {
    Refused(call, key.status());
  }
  return key.status();
}

// HTTP/2 tells clients the limit, and gRPC 1.51 enforces it only once they have acknowledged it.
absl::Status CallGate::CheckCalls(const OpenCall& connection) const {
  constexpr int64_t kUnnoticed = 64;  // where few calls are allowed, and follow each other at once
  if (connection.open_calls() <= 2 * max_calls_ + kUnnoticed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the connection has ", connection.open_calls(),
                                                   " open calls, the limit is ", max_calls_,
                                                   " (--max_connection_calls)"));
}

absl::StatusOr<KeyStore::Grant> CallGate::Authorize(const CallHead& head) const {
  if (head.method.unknown) {
    return absl::UnimplementedError(absl::StrCat("there is no method ", head.method.name));
  }
  if (keys_ == nullptr || head.method.group == MethodGroup::kOpen) return KeyStore::Grant();
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
  std::optional<TraceContext> trace = CallerOf(head);
  std::optional<bool> caller_samples;
  if (trace.has_value()) {
    caller_samples = trace->sampled;
  } else if (tracer_ != nullptr && !IsProbe(head.method)) {
    trace = TraceContext{.trace_high = ids_.Next(), .trace_low = ids_.Next()};
  } else {
    return std::nullopt;
  }
  trace->parent = std::exchange(trace->span, ids_.Next());
  if (tracer_ != nullptr) {
    trace->sampled = tracer_->Samples(caller_samples, trace->trace_low);
  }
  return trace;
}

RequestTrace CallGate::TraceOf(const CallInfo& call, RequestTrace::Kind kind, uint64_t span) {
  const TraceContext& trace = *call.trace;
  return {.kind = kind,
          .trace_high = trace.trace_high,
          .trace_low = trace.trace_low,
          .span = span,
          .parent = kind == RequestTrace::Kind::kMessage ? trace.span : trace.parent,
          .state = trace.state,
          .method = call.method.name,
          .peer = call.connection.peer(),
          .key = call.key,
          .request_id = call.request_id};
}

std::unique_ptr<OpenSpan> CallGate::OpenStream(const CallInfo& call) {
  const bool computes = call.method.group == MethodGroup::kInfer;
  if (!Traces(call) || !call.method.streams || !computes) return nullptr;
  RequestTrace trace = TraceOf(call, RequestTrace::Kind::kStream, call.trace->span);
  trace.start = absl::Now();
  trace.arrival = SteadyNow();
  return std::make_unique<OpenSpan>(*tracer_, std::move(trace));
}

uint64_t CallGate::RequestSpan(const CallInfo& call) {
  if (!Traces(call)) return 0;
  return call.method.streams ? ids_.Next() : call.trace->span;
}

void CallGate::Refused(const CallInfo& call, const absl::Status& status) {
  metrics_.CountRefused(RefusalOf(status));
  call.connection.Count({.refused = 1});
  Log(call, {.code = status.code()}, 0);
}

void CallGate::Ended(const CallInfo& call, const CallEnd& end) {
  call.connection.Count({.requests = 1,
                         .request_bytes = end.request_bytes,
                         .response_bytes = end.response_bytes,
                         .refused = IsRefusal(end.code) ? 1 : 0});
  // Of probes only errors are worth a line and a span.
  if (IsProbe(call.method) && end.code == absl::StatusCode::kOk) return;
  const uint64_t span = end.span != 0 ? end.span : RequestSpan(call);
  Log(call, end, span);
  if (span != 0) AddTrace(call, end, span);
}

void CallGate::AddTrace(const CallInfo& call, const CallEnd& end, uint64_t span) {
  const bool message = call.method.streams;
  RequestTrace trace =
      TraceOf(call, message ? RequestTrace::Kind::kMessage : RequestTrace::Kind::kRequest, span);
  trace.arrival = end.arrival.value_or(SteadyNow() - end.total);
  trace.start = absl::Now() - (SteadyNow() - trace.arrival);
  trace.total = end.total;
  trace.message_id = std::string(end.message_id);
  trace.model = std::string(end.model.substr(0, kMaxLoggedModelBytes));
  trace.code = end.code;
  trace.sequences = end.sequences;
  trace.tokens = end.tokens;
  trace.request_bytes = end.request_bytes;
  trace.response_bytes = end.response_bytes;
  trace.tokenize = end.tokenize;
  trace.queue = end.queue;
  trace.compute = end.compute;
  trace.serialize = end.serialize;
  trace.submitted = end.submitted;
  trace.answering = end.answering;
  trace.batches.assign(end.batches.begin(), end.batches.end());
  tracer_->Add(std::move(trace));
}

void CallGate::Log(const CallInfo& call, const CallEnd& end, uint64_t span) {
  if (log_ == nullptr || !log_->Wants(end.code)) return;
  log_->Add({.time = absl::Now() - end.total,
             .request_id = call.request_id,
             .trace_id = call.trace.has_value() ? call.trace->trace_id() : "",
             .span_id = SpanIdOf(call, span),
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
