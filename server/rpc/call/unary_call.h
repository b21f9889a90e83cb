// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/access/call_gate.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A call with one message and one answer. It begins with the call's head, and reads the message
// itself: gRPC would keep calls without a message to itself, as many as a client likes to send.
// Owns itself until OnDone. Thread-safe.
class UnaryCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  // Starts the request, and may take the message. `done` is called once, perhaps inside.
  using Handler = absl::AnyInvocable<void(const IncomingCall& call, grpc::ByteBuffer& message,
                                          std::shared_ptr<CallState> state, Done done)>;

  // The call is one of `calls` until gRPC lets go of it.
  static UnaryCall* Start(OpenCalls<UnaryCall>& calls, MemoryBudgets& budgets,
                          const IncomingCall& incoming, Handler handler) {
    auto* call = new UnaryCall(calls, budgets, incoming, std::move(handler));
    call->StartRead(&call->message_);
    calls.Add(call);
    return call;
  }

  // Ends a call whose message has not come, with UNAVAILABLE. Others end once they are answered.
  void Close() {
    if (reading_.exchange(false)) End(absl::UnavailableError("the server is draining"));
  }
  bool CancelIfSlow(WriteClock::time_point since) {
    if (writing_since_.load() >= since) return false;
    writing_since_ = kNotWriting;
    incoming_.info->connection.Count({.refused = 1});
    incoming_.context.TryCancel();
    return true;
  }

  void OnReadDone(bool ok) override {
    if (!reading_.exchange(false)) {
      // Close has ended the call. It holds the lock of OpenCalls, so the log is left to this place.
      return incoming_.gate.Ended(*incoming_.info, {.code = absl::StatusCode::kUnavailable});
    }
    if (!ok) return End(RefuseNoMessage(incoming_));
    handler_(incoming_, message_, state_, [this](const absl::Status& status) { End(status); });
  }
  void OnCancel() override { state_->Cancel(); }
  void OnDone() override {
    calls_.Remove(this);
    delete this;
  }

 private:
  static constexpr WriteClock::time_point kNotWriting = WriteClock::time_point::max();

  UnaryCall(OpenCalls<UnaryCall>& calls, MemoryBudgets& budgets, const IncomingCall& incoming,
            Handler handler)
      : calls_(calls),
        incoming_(incoming),
        state_(std::make_shared<CallState>(
            incoming.info, budgets.ForConnection(incoming.info->connection.peer()))),
        handler_(std::move(handler)) {}

  void End(const absl::Status& status) {
    const grpc::Status end = EndOf(status, *incoming_.info, incoming_.context);
    writing_since_ = WriteClock::now();
    Finish(end);
  }

  OpenCalls<UnaryCall>& calls_;
  const IncomingCall incoming_;  // its context lives until OnDone
  const std::shared_ptr<CallState> state_;
  Handler handler_;
  grpc::ByteBuffer message_;
  std::atomic<bool> reading_{true};  // until the message is there, or Close
  std::atomic<WriteClock::time_point> writing_since_{kNotWriting};
};

}  // namespace attendant
