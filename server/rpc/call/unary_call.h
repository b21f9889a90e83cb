// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/reading_call.h"

namespace attendant {

// A call with one message. Thread-safe.
class UnaryCall final : public ReadingCall {
 public:
  // Starts the request, and may take the message. `done` is called once, perhaps inside.
  using Handler = absl::AnyInvocable<void(const IncomingCall& call, grpc::ByteBuffer& message,
                                          std::shared_ptr<CallState> state, Done done)>;

  // The call is one of `calls` until gRPC lets go of it.
  static UnaryCall* Start(OpenCalls<ReadingCall>& calls, MemoryBudgets& budgets,
                          const IncomingCall& incoming, Handler handler) {
    auto* call = new UnaryCall(calls, budgets, incoming, std::move(handler));
    call->wait().Begin();
    call->Begin();
    return call;
  }

 private:
  UnaryCall(OpenCalls<ReadingCall>& calls, MemoryBudgets& budgets, const IncomingCall& incoming,
            Handler handler)
      : ReadingCall(calls, budgets, incoming), handler_(std::move(handler)) {}

  bool Take(bool ok) override {
    has_message_ = ok;
    return false;
  }
  void StartRequest() override {
    const absl::Status waited = wait().End();
    if (!waited.ok() || !has_message_) return End(EndUnheard(incoming(), waited));
    handler_(incoming(), message(), state(), Ender());
  }

  Handler handler_;
  bool has_message_ = false;
};

}  // namespace attendant
