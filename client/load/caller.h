// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/client.h"

namespace attendant::client {

// What one call of a load came to.
struct CallResult {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message = {};
  // Of a call that went well.
  int64_t sequences = 0;
  std::optional<int64_t> tokens = {};   // where the protocol tells
  std::optional<Timings> timings = {};  // where the protocol tells
};

// Sends the requests of a load. Thread-safe.
class Caller {
 public:
  using Done = std::function<void(const CallResult&)>;

  // Calls that are still running are cancelled, and their `done` has returned before the destructor
  // does.
  virtual ~Caller() = default;

  // Sends request `index`, of a list that repeats for ever, on connection `connection`, of as many
  // as were asked for. `done` runs exactly once, on a thread of the caller's.
  virtual void Start(int64_t index, int64_t connection, Done done) = 0;

  // Ends the calls that are running.
  virtual void CancelAll() = 0;
};

}  // namespace attendant::client
