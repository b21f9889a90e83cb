// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "client/client.h"

namespace attendant::client {

// Encodes an input of any length as several requests, some of them at once, and hands the results
// over in the input's order. Holds at most max_concurrency + 1 requests. One thread.
class OrderedEncoder {
 public:
  struct Limits {
    size_t max_sequences = 32;   // of a request
    size_t max_bytes = 1 << 20;  // of a request; a longer sequence goes alone
    size_t max_concurrency = 4;  // requests
  };
  // Gets each request with its result; an error from it ends the work.
  using Sink =
      std::function<absl::Status(const EncodeRequest& request, const EncodeResult& result)>;

  // Every request is a copy of `prototype`, whose model is set. `client` must outlive the encoder.
  OrderedEncoder(Client& client, EncodeRequest prototype, const Limits& limits, Sink sink);

  // Waits when enough is under way. Returns the first error so far, naming the inputs concerned.
  absl::Status Add(Sequence sequence);

  // Waits for everything.
  absl::Status Finish();

 private:
  struct Call;

  absl::Status Flush();
  absl::Status TakeOldest();

  Client& client_;
  const EncodeRequest prototype_;
  const Limits limits_;
  const Sink sink_;
  EncodeRequest next_;
  size_t next_bytes_ = 0;
  int64_t taken_ = 0;  // sequences handed to the sink
  // Shared with the callback, which may outlive an encoder given up after an error.
  std::deque<std::shared_ptr<Call>> calls_;
};

}  // namespace attendant::client
