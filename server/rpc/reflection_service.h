// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/access/call_gate.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"

namespace attendant {

// grpc.reflection.v1alpha.ServerReflection over the messages of this program. gRPC's own service is
// not used: every one of its streams holds a thread, and whatever links it cannot switch it off.
// Thread-safe.
class ReflectionService final : public RawService<grpc::reflection::v1alpha::ServerReflection> {
 public:
  // `others` are the full names of the server's other services.
  ReflectionService(CallGate& gate, MemoryBudgets& budgets, std::vector<std::string> others);

 private:
  using Stream = AnswerStream<grpc::reflection::v1alpha::ServerReflectionResponse>;

  absl::Status Answer(Stream::Exchange& exchange);

  std::vector<std::string> services_;
  OpenMethodOf<Stream> streams_;
};

}  // namespace attendant
