// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/reading_call.h"

namespace attendant {

// A call whose messages, one after the other, make one request. It ends when its API key does not
// count any more at one of them. Thread-safe.
class CollectingCall final : public ReadingCall {
 public:
  // Takes in one message, whose bytes are accounted for. False: it needs no more.
  using Add = std::function<bool(grpc::ByteBuffer& bytes)>;
  // Starts the request, for which no memory is accounted any more. `collected`: OK, or why not all
  // messages could be taken in. `done` is called once, perhaps inside.
  using Handler = std::function<void(const absl::Status& collected,
                                     std::shared_ptr<CallState> state, Done done)>;

  // The call is one of `calls` until gRPC lets go of it.
  static CollectingCall* Start(OpenCalls<ReadingCall>& calls, MemoryBudgets& budgets,
                               const IncomingCall& incoming, Add add, Handler handler) {
    auto* call = new CollectingCall(calls, budgets, incoming, std::move(add), std::move(handler));
    // A client that sends nothing keeps memory, as one that does not take its answer.
    call->AwaitClient();
    call->Begin();
    return call;
  }

 private:
  CollectingCall(OpenCalls<ReadingCall>& calls, MemoryBudgets& budgets,
                 const IncomingCall& incoming, Add add, Handler handler)
      : ReadingCall(calls, budgets, incoming), add_(std::move(add)), handler_(std::move(handler)) {}

  bool Take(bool ok) override {
    // gRPC knows that a client has gone before it calls OnCancel.
    if (!incoming().context.IsCancelled()) key_ = incoming().gate.Recheck(*incoming().info);
    if (!ok || !key_.ok()) return false;
    collected_ = state()->AcquireRequest(static_cast<int64_t>(message().Length()));
    const bool more = collected_.ok() && add_(message());
    message().Clear();
    return more;
  }
  void StartRequest() override {
    if (!key_.ok()) return End(key_);
    if (incoming().context.IsCancelled()) return End(EndUnheard(incoming()));
    state()->ReleaseRequest();
    handler_(collected_, state(), Ender());
  }

  const Add add_;
  const Handler handler_;
  absl::Status key_;        // OK: it counts
  absl::Status collected_;  // OK: all messages so far
};

}  // namespace attendant
