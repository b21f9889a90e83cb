// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/client.h"

namespace attendant::client {

// Encodes any number of sequences in several requests, some of them at the same time, and passes
// the results on in the order of the sequences. Holds at most max_concurrency + 1 requests. One
// thread at a time may use it.
class OrderedEncoder {
 public:
  struct Limits {
    size_t max_sequences = 32;   // in one request
    size_t max_bytes = 1 << 20;  // of text or ids in one request; a longer sequence goes alone
    size_t max_concurrency = 4;  // requests at the same time
  };
  // Gets each request with its result; an error from it ends the work.
  using Sink =
      std::function<absl::Status(const EncodeRequest& request, const EncodeResult& result)>;

  // Every request is a copy of `prototype`, whose model is set. `client` must outlive the encoder.
  OrderedEncoder(Client& client, EncodeRequest prototype, const Limits& limits, Sink sink);
  // Cancels the requests that run.
  ~OrderedEncoder() { stop_.request_stop(); }

  // Waits while max_concurrency requests run. Returns the error of the oldest request that failed;
  // its message names the sequences of the request. After an error, the sink's too, the other
  // requests are cancelled, and there is nothing more to add.
  absl::Status Add(Sequence sequence);

  // Sends the rest and waits for all results.
  absl::Status Finish();

 private:
  struct Call;

  absl::Status Flush();
  absl::Status TakeOldest();
  absl::Status PassOn(const Call& call);

  Client& client_;
  const EncodeRequest prototype_;
  const Limits limits_;
  const Sink sink_;
  EncodeRequest next_;
  size_t next_bytes_ = 0;
  int64_t taken_ = 0;  // sequences handed to the sink
  // Shared with the callbacks, which may outlive the encoder: it waits for none that it cancels.
  std::deque<std::shared_ptr<Call>> calls_;
  std::stop_source stop_;  // cancels the requests that run
};

// Appends the rows [n, columns] of an answer to those [all, columns] of the answers before it;
// `all` is empty before the first. INTERNAL when the columns differ: the server has another model
// now, or servers behind one name have different ones. `name` is the output's.
absl::Status AppendRows(absl::string_view name, const Tensor& rows, Tensor& all);

}  // namespace attendant::client
