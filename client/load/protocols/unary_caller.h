// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "client/channel.h"
#include "client/load/caller.h"
#include "client/load/protocols/completion_thread.h"
#include "client/load/protocols/grpc_load.h"

namespace attendant::client {

// Sends each request as a call of load.unary.
class UnaryCaller final : public Caller {
 public:
  // Each call ends with DEADLINE_EXCEEDED after `timeout`.
  UnaryCaller(GrpcLoad load, absl::Duration timeout);

  void Start(int64_t index, int64_t connection, Done done) override;
  void CancelAll() override { calls_.Cancel(); }

 private:
  struct Call;

  void Finish(Call* call);

  const GrpcLoad load_;
  std::vector<grpc::ByteBuffer> messages_;  // of load_.requests
  // Of load_.channels, registered with them as a generated stub does: a generic stub would copy the
  // path for each call.
  std::vector<grpc::internal::RpcMethod> methods_;
  const absl::Duration timeout_;
  std::vector<std::unique_ptr<CompletionThread>> threads_;
  OutstandingCalls calls_;  // destroyed first
};

}  // namespace attendant::client
