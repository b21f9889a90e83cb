// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include "server/access/call_gate.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/ended_call.h"

namespace attendant {

// The calls of methods that no service has: UNIMPLEMENTED, with or without an API key. gRPC's own
// answer would neither count nor limit them. Thread-safe.
class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  // Both must outlive the calls.
  UnknownMethods(CallGate& gate, MemoryBudgets& budgets) : gate_(gate), budgets_(budgets) {}

  OpenMethod& open_method() { return ended_; }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  CallGate& gate_;
  MemoryBudgets& budgets_;
  OpenMethodOf<EndedCall> ended_;
};

}  // namespace attendant
