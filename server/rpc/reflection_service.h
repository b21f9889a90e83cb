// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/access/call_gate.h"
#include "server/rpc/call/raw_service.h"

namespace attendant {

// grpc.reflection.v1alpha.ServerReflection over the messages of this program. gRPC's own service is
// not used: every one of its streams holds a thread, and whatever links it cannot switch it off.
// Thread-safe.
class ReflectionService final : public RawService<grpc::reflection::v1alpha::ServerReflection> {
 public:
  // `services` are the full names of those that the server has.
  ReflectionService(CallGate& gate, std::vector<std::string> services);

 private:
  class Call;

  const std::vector<std::string> services_;
};

}  // namespace attendant
