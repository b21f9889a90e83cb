// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/calls.h"

#include <chrono>
#include <iterator>
#include <string>

namespace attendant {
namespace {

// Clients accept 8 KiB of trailers by default, and each byte may take three there
// (percent-encoding).
constexpr size_t kMaxMessageBytes = 1024;

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kMaxMessageBytes)));
}

void AddRetryHint(const absl::Status& status, grpc::CallbackServerContext& context) {
  if (const std::optional<absl::Duration> delay = RetryAfter(status)) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms",
                                std::to_string(absl::ToInt64Milliseconds(*delay)));
  }
}

CallGate::Entry EnterGate(CallGate& gate, const CallMethod& method,
                          grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto header = [&](absl::string_view name) -> std::optional<absl::string_view> {
    const auto [first, last] = metadata.equal_range({name.data(), name.size()});
    if (first == last || std::next(first) != last) return std::nullopt;
    return absl::string_view(first->second.data(), first->second.size());
  };
  CallGate::Entry entry = gate.Enter({.method = method, .peer = context.peer(), .header = header});
  const CallInfo& call = *entry.call;
  if (!call.request_id.empty()) context.AddInitialMetadata("x-request-id", call.request_id);
  if (call.trace.has_value()) {
    context.AddInitialMetadata("traceparent", call.trace->traceparent());
    if (!call.trace->state.empty()) context.AddInitialMetadata("tracestate", call.trace->state);
  }
  return entry;
}

absl::Time Deadline(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

}  // namespace attendant
