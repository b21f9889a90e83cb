// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/request_spans.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/tracing/id_source.h"

namespace attendant {
namespace {

bool WasSubmitted(const RequestTrace& request) { return request.submitted > absl::ZeroDuration(); }

bool WasAnswered(const RequestTrace& request) {
  return WasSubmitted(request) && request.code == absl::StatusCode::kOk;
}

bool WasComputed(const RequestTrace& request) {
  return WasAnswered(request) && request.compute > absl::ZeroDuration();
}

void AddText(const char* name, absl::string_view text, OtlpSpan& span) {
  if (!text.empty()) span.attributes.push_back({name, std::string(text)});
}

void AddNumber(const char* name, int64_t number, OtlpSpan& span) {
  span.attributes.push_back({name, number});
}

// "ipv4:127.0.0.1:40312" and "ipv6:%5B::1%5D:40312", as gRPC writes them.
void AddPeer(absl::string_view peer, OtlpSpan& span) {
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  const size_t colon = peer.rfind(':');
  int64_t port = 0;
  const bool has_port =
      colon != absl::string_view::npos && absl::SimpleAtoi(peer.substr(colon + 1), &port);
  if (has_port) peer = peer.substr(0, colon);
  AddText("client.address",
          absl::StrReplaceAll(peer, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}}), span);
  if (has_port) AddNumber("client.port", port, span);
}

// "package.Service/Method", or "POST /path".
void AddMethod(const RequestTrace& request, OtlpSpan& span) {
  const std::pair<absl::string_view, absl::string_view> http =
      absl::StrSplit(request.method, absl::MaxSplits(' ', 1));
  if (!http.second.empty()) {
    AddText("http.request.method", http.first, span);
    AddText("http.route", http.second, span);
    return;
  }
  const std::pair<absl::string_view, absl::string_view> rpc =
      absl::StrSplit(request.method, absl::MaxSplits('/', 1));
  AddText("rpc.system", "grpc", span);
  AddText("rpc.service", rpc.first, span);
  AddText("rpc.method", rpc.second, span);
  if (request.kind == RequestTrace::Kind::kStream) return;
  AddNumber("rpc.grpc.status_code", static_cast<int64_t>(request.code), span);
}

// Of a server's span, as the conventions for gRPC say: faults of the client are none of the server.
bool IsServerError(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kUnimplemented || code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDataLoss;
}

void AddOutcome(const RequestTrace& request, OtlpSpan& span) {
  AddText("attendant.model", request.model, span);
  AddText("attendant.message_id", request.message_id, span);
  AddNumber("attendant.request_bytes", request.request_bytes, span);
  if (request.code == absl::StatusCode::kOk) {
    AddNumber("attendant.sequences", request.sequences, span);
    AddNumber("attendant.tokens", request.tokens, span);
    AddNumber("attendant.response_bytes", request.response_bytes, span);
    return;
  }
  const std::string code = absl::StatusCodeToString(request.code);
  AddText("error.type", code, span);
  if (IsServerError(request.code)) span.error = code;
}

OtlpSpan OwnSpan(const RequestTrace& request) {
  const bool message = request.kind == RequestTrace::Kind::kMessage;
  OtlpSpan span{.ids = {request.trace_high, request.trace_low, request.span},
                .parent = request.parent,
                .state = request.state,
                .name = message ? "message" : request.method,
                .kind = message ? SpanKind::kInternal : SpanKind::kServer,
                .start = request.start,
                .end = request.start + request.total};
  AddMethod(request, span);
  AddPeer(request.peer, span);
  AddText("attendant.request_id", request.request_id, span);
  AddText("attendant.api_key", request.key, span);
  if (request.kind != RequestTrace::Kind::kStream) AddOutcome(request, span);
  for (const TracedBatch& batch : request.batches) span.links.push_back(BatchIds(batch.id));
  return span;
}

OtlpSpan BatchSpan(const RequestTrace& request, const TracedBatch& batch) {
  const absl::Time start = request.start + (batch.start - request.arrival);
  OtlpSpan span{
      .ids = BatchIds(batch.id), .name = "batch", .start = start, .end = start + batch.compute};
  AddText("attendant.model", request.model, span);
  AddNumber("attendant.replica", batch.worker, span);
  AddNumber("attendant.batch.tokens", batch.tokens, span);
  AddNumber("attendant.batch.sequences", batch.sequences, span);
  AddNumber("attendant.batch.requests", batch.requests, span);
  return span;
}

// When the first of its batches began and the last one ended, since arrival.
std::pair<absl::Duration, absl::Duration> Computing(const RequestTrace& request) {
  const absl::Duration queued = request.submitted + request.queue;
  if (request.batches.empty()) return {queued, queued + request.compute};
  absl::Duration first = absl::InfiniteDuration(), last = absl::ZeroDuration();
  for (const TracedBatch& batch : request.batches) {
    const absl::Duration begin = batch.start - request.arrival;
    first = std::min(first, begin);
    last = std::max(last, begin + batch.compute);
  }
  return {first, last};
}

}  // namespace

SpanIds BatchIds(uint64_t id) {
  IdSource source(~id);  // a batch's id is near a request's, whose spans come from IdSource too
  SpanIds ids;
  ids.trace_high = source.Next();
  ids.trace_low = source.Next();
  ids.span = source.Next();
  return ids;
}

std::vector<OtlpSpan> MakeSpans(const RequestTrace& request) {
  std::vector<OtlpSpan> spans;
  spans.push_back(OwnSpan(request));
  IdSource ids(request.span);
  const auto add = [&](const char* name, absl::Duration begin, absl::Duration end) {
    spans.push_back({.ids = {request.trace_high, request.trace_low, ids.Next()},
                     .parent = request.span,
                     .name = name,
                     .start = request.start + begin,
                     .end = request.start + end});
  };
  if (WasSubmitted(request)) {
    add("tokenize", request.submitted - request.tokenize, request.submitted);
  }
  if (WasComputed(request)) {
    add("queue", request.submitted, request.submitted + request.queue);
    const auto [begin, end] = Computing(request);
    add("compute", begin, end);
  }
  if (WasAnswered(request)) {
    add("serialize", request.answering, request.answering + request.serialize);
  }
  for (const TracedBatch& batch : request.batches) {
    if (batch.told) spans.push_back(BatchSpan(request, batch));
  }
  return spans;
}

size_t NumSpans(const RequestTrace& request) {
  size_t spans = 1;
  spans += WasSubmitted(request) ? 1 : 0;
  spans += WasComputed(request) ? 2 : 0;
  spans += WasAnswered(request) ? 1 : 0;
  for (const TracedBatch& batch : request.batches) spans += batch.told ? 1 : 0;
  return spans;
}

}  // namespace attendant
