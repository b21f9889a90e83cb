// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <memory>

#include "server/requests/memory/client_waits.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A call that was refused when it began, until its client has taken the end. Of any kind: see
// EndedCallOf.
class EndedCall {
 public:
  void Close() {}  // does nothing: it has ended
  // Called by OpenCalls alone, one thread at a time.
  bool CancelIfSlow(WriteClock::time_point since) {
    if (cancelled_ || ended_ >= since) return false;
    cancelled_ = true;
    incoming_.info->connection.Count({.refused = 1});
    incoming_.context.TryCancel();
    return true;
  }

 protected:
  EndedCall(MemoryBudgets& budgets, const IncomingCall& incoming)
      : incoming_(incoming),
        memory_(budgets.ForConnection(incoming.info->connection.peer())),
        wait_(MakeWait(*memory_, incoming.context)) {
    wait_.Begin();
  }
  ~EndedCall() = default;

 private:
  const IncomingCall incoming_;  // its context lives until OnDone
  const std::shared_ptr<ConnectionBudgets> memory_;
  ClientWaits::Wait wait_;
  const WriteClock::time_point ended_ = WriteClock::now();
  bool cancelled_ = false;
};

// The reactor of such a call. Owns itself until OnDone.
template <typename Reactor>
class EndedCallOf final : public Reactor, public EndedCall {
 public:
  // Ends the call, which is one of `calls` until gRPC lets go of it. REQUIRES: `status` has its
  // metadata.
  EndedCallOf(OpenCalls<EndedCall>& calls, MemoryBudgets& budgets, const IncomingCall& incoming,
              const grpc::Status& status)
      : EndedCall(budgets, incoming), calls_(calls) {
    calls_.Add(this);
    this->Finish(status);
  }

  void OnDone() override {
    calls_.Remove(this);
    delete this;
  }

 private:
  OpenCalls<EndedCall>& calls_;
};

}  // namespace attendant
