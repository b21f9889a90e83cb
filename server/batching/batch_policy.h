// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace attendant {

// The policy's view of a queue.
struct QueueSnapshot {
  int64_t tokens = 0;     // of all waiting sequences
  int64_t sequences = 0;  // waiting
  absl::Time oldest_arrival = absl::InfiniteFuture();
  bool draining = false;  // no more requests arrive
};

struct BatchDecision {
  bool run = false;  // take a batch now
  absl::Time wait_until =
      absl::InfiniteFuture();  // else: decide again then, or when a request arrives
};

// The content of a batch so far.
struct BatchFill {
  int64_t tokens = 0;
  int64_t sequences = 0;
};

// Decides when an idle worker takes a batch, and how far it fills the batch. Pure: no clock, no
// thread, no state; each call is O(1).
//
// A batch is a prefix of the queue: the first sequence that does not fit ends it. If shorter ones
// could overtake, they would fill the rest of the batch, but the long sequence would wait for their
// compute too, and under load its answer time would depend on the other requests. So no sequence is
// overtaken inside a priority. Each batch starts with the sequence that waits first, which always
// fits an empty batch. The unused room of a batch is less than the longest sequence, and it costs
// nothing: the cost of a packed batch is that of its tokens.
class BatchPolicy {
 public:
  struct Limits {
    int64_t max_batch_tokens = 0;
    int64_t max_batch_sequences = 0;
    absl::Duration max_queue_delay =
        absl::ZeroDuration();  // zero: an idle worker never waits
  };

  // REQUIRES: limits are positive, the delay is not negative.
  explicit BatchPolicy(const Limits& limits);

  // Whether an idle worker takes a batch at `now`. With a delay it waits for a full one, at most
  // until the oldest sequence has been there for max_queue_delay.
  BatchDecision Decide(const QueueSnapshot& queue, absl::Time now) const;

  // Whether a sequence of `len` tokens still goes into a batch that holds `fill`.
  bool Fits(const BatchFill& fill, int64_t len) const;

 private:
  bool Full(const QueueSnapshot& queue) const;

  Limits limits_;
};

}  // namespace attendant
