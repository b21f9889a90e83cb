// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/client.h"

namespace attendant::client {

// The result of one call of a load.
struct CallResult {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message = {};
  int64_t resent = 0;  // how often the request was sent again; of HTTP
  // The fields below are set for a call without an error.
  int64_t sequences = 0;
  std::optional<int64_t> tokens = {};   // where the protocol tells
  std::optional<Timings> timings = {};  // where the protocol tells
};

// The result INTERNAL for an answer with `told` sequences to a request with `asked`.
inline CallResult OtherNumber(int64_t told, int64_t asked) {
  return {
      .code = grpc::StatusCode::INTERNAL,
      .message = absl::StrCat("the answer is about ", told, " sequences, its request has ", asked)};
}

// Sends the requests of a load. Thread-safe.
class Caller {
 public:
  using Done = std::function<void(const CallResult&)>;

  // Cancels the calls that still run, and returns after their `done` has returned.
  virtual ~Caller() = default;

  // Sends request `index` on connection `connection`. The list of requests repeats for ever. `done`
  // runs exactly once, on a thread of the Caller.
  virtual void Start(int64_t index, int64_t connection, Done done) = 0;

  // Cancels the calls that run.
  virtual void CancelAll() = 0;
};

}  // namespace attendant::client
