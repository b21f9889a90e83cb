// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "kernels/core/status_macros.h"
#include "server/access/call_gate.h"
#include "server/requests/memory/byte_budget.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A call that was answered or refused when it began, until its client has taken the end. Of any
// kind: see EndedCallOf.
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
  EndedCall(const IncomingCall& incoming, ByteBudget::Share memory)
      : incoming_(incoming), memory_(std::move(memory)) {}
  ~EndedCall() = default;

 private:
  const IncomingCall incoming_;  // its context lives until OnDone
  const ByteBudget::Share memory_;
  const WriteClock::time_point ended_ = WriteClock::now();
  bool cancelled_ = false;
};

// Acquires more memory for an answer that is there at once. RESOURCE_EXHAUSTED: it does not fit.
// Such a call may come again, so it must have had no effect yet. Probes get their answers all the
// same.
inline absl::Status HoldAnswer(MemoryBudgets& budgets, const IncomingCall& call, size_t bytes,
                               ByteBudget::Share& memory) {
  if (call.info->method.group == MethodGroup::kOpen || bytes == 0) return absl::OkStatus();
  const auto connection = budgets.ForConnection(call.info->connection.peer());
  ATTENDANT_ASSIGN_OR_RETURN(
      ByteBudget::Share more,
      connection->AcquireResponse(static_cast<int64_t>(bytes), memory.bytes()));
  memory.Add(std::move(more));
  return absl::OkStatus();
}

// The reactor of such a call. Owns itself until OnDone.
template <typename Reactor>
class EndedCallOf final : public Reactor, public EndedCall {
 public:
  // Ends the call, which is one of `calls` until gRPC lets go of it. It holds `memory`, that of its
  // answer, as long. REQUIRES: `status` has its metadata.
  EndedCallOf(OpenCalls<EndedCall>& calls, const IncomingCall& incoming, const grpc::Status& status,
              ByteBudget::Share memory = {})
      : EndedCall(incoming, std::move(memory)), calls_(calls) {
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
