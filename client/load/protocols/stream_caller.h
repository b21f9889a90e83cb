// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "client/load/caller.h"
#include "client/load/clock.h"
#include "client/load/protocols/completion_thread.h"
#include "client/load/protocols/grpc_load.h"
#include "client/load/protocols/request_stream.h"

namespace attendant::client {

// Sends the requests of each connection on one stream of load.stream (RequestStream).
class StreamCaller final : public Caller {
 public:
  // A request ends with DEADLINE_EXCEEDED when it has no answer after `timeout` of the clock.
  StreamCaller(GrpcLoad load, absl::Duration timeout,
               std::unique_ptr<const LoadClock> clock = std::make_unique<SteadyClock>());
  ~StreamCaller() override;

  void Start(int64_t index, int64_t connection, Done done) override;
  void CancelAll() override;

 private:
  const GrpcLoad load_;
  const std::unique_ptr<const LoadClock> clock_;
  std::vector<std::unique_ptr<CompletionThread>> threads_;
  std::vector<std::unique_ptr<RequestStream>> streams_;  // of load_.channels
};

}  // namespace attendant::client
