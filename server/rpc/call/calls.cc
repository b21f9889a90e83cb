// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/calls.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/requests/call_state.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

// Clients accept 8 KiB of trailers by default, and each byte may take three there
// (percent-encoding).
constexpr size_t kMaxMessageBytes = 1024;

struct OpenStream {
  OpenStream(std::shared_ptr<const CallInfo> info, ByteBudget::Share share)
      : call(std::move(info)), memory(std::move(share)) {}

  const std::shared_ptr<const CallInfo> call;
  const ByteBudget::Share memory;
};

struct UnrefCall {
  void operator()(grpc_call* call) const { grpc_call_unref(call); }
};

// Finish would not do: the end that it sends stays in memory until the client takes it. Cancelling
// sends the end too, and frees the call whatever the client does.
ClientWaits::Ender MakeEnder(grpc_call& call) {
  grpc_call_ref(&call);
  return [ref = std::unique_ptr<grpc_call, UnrefCall>(&call)](const absl::Status& status) {
    const std::string message(status.message());
    grpc_call_cancel_with_status(ref.get(), static_cast<grpc_status_code>(status.code()),
                                 message.c_str(), nullptr);
  };
}

// The memory of a head's fields in gRPC 1.51 and in the server's copy, beyond the fields of usual
// clients, which the bytes of a call and of a stream include.
int64_t HeadBytes(const grpc::CallbackServerContext& context) {
  constexpr int64_t kFieldBytes = 256;
  constexpr int64_t kUsualBytes = 2 << 10;
  int64_t bytes = -kUsualBytes;
  for (const auto& [name, value] : context.client_metadata()) {
    bytes += kFieldBytes + static_cast<int64_t>(name.size() + value.size());
  }
  return std::max<int64_t>(0, bytes);
}

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

void AddCallMetadata(const CallInfo& call, bool answers, grpc::CallbackServerContext& context) {
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    answers ? context.AddInitialMetadata(name, value) : context.AddTrailingMetadata(name, value);
  };
  add("x-request-id", call.request_id);
  if (!call.trace.has_value()) return;
  add("traceparent", call.trace->traceparent());
  add("tracestate", call.trace->state);
}

grpc::Status EndOf(const absl::Status& status, const CallInfo& call,
                   grpc::CallbackServerContext& context, bool begun) {
  AddRetryHint(status, context);
  if (!begun) AddCallMetadata(call, status.ok(), context);
  return ToGrpcStatus(status);
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
  if (absl::IsResourceExhausted(entry.status)) context.TryCancel();
  if (!entry.status.ok()) AddCallMetadata(*entry.call, /*answers=*/false, context);
  return entry;
}

CallGate::Entry EnterStream(CallGate& gate, MemoryBudgets& budgets, const CallMethod& method,
                            grpc::CallbackServerContext& context) {
  CallGate::Entry entry = EnterGate(gate, method, context);
  if (!entry.status.ok()) return entry;
  absl::StatusOr<ByteBudget::Share> memory =
      budgets.ForConnection(entry.call->connection.peer())->AcquireStream(HeadBytes(context));
  if (!memory.ok()) {
    entry.status = memory.status();
    AddRetryHint(entry.status, context);
    AddCallMetadata(*entry.call, /*answers=*/false, context);
    gate.Ended(*entry.call, {.code = entry.status.code()});
    return entry;
  }
  const auto open = std::make_shared<OpenStream>(std::move(entry.call), *std::move(memory));
  entry.call = std::shared_ptr<const CallInfo>(open, open->call.get());
  return entry;
}

ClientWaits::Wait MakeWait(ConnectionBudgets& memory, grpc::CallbackServerContext& context) {
  return ClientWaits::Wait(memory.waits(), kCallBytes + HeadBytes(context),
                           [&call = *context.c_call()] { return MakeEnder(call); });
}

absl::Status EndUnheard(const IncomingCall& call, const absl::Status& waited) {
  absl::Status status = absl::InvalidArgumentError("the call has no whole message");
  if (!waited.ok()) {
    status = waited;
  } else if (!call.context.IsCancelled()) {
    call.gate.CountMalformed();
  } else if (Deadline(call.context) <= SteadyNow()) {
    status = absl::DeadlineExceededError("the deadline passed before the call had a whole message");
  } else {
    status = CancelledByClient();
  }
  call.gate.Ended(*call.info, {.code = status.code()});
  return status;
}

absl::Time Deadline(const grpc::CallbackServerContext& context) {
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_clock_type clock = deadline.clock_type;
  if (gpr_time_cmp(deadline, gpr_inf_future(clock)) == 0) return absl::InfiniteFuture();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(clock));
  return SteadyNow() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

}  // namespace attendant
