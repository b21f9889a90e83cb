// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace attendant {

// What the policy needs to know of a queue.
struct QueueSnapshot {
  int64_t tokens = 0;     // of the sequences that wait
  int64_t sequences = 0;  // that wait
  absl::Time oldest_arrival = absl::InfiniteFuture();
  bool draining = false;  // nothing more will come
};

struct BatchDecision {
  bool run = false;  // take a batch now
  absl::Time wait_until =
      absl::InfiniteFuture();  // else: decide again then, or when something arrives
};

// What has been taken for one batch so far.
struct BatchFill {
  int64_t tokens = 0;
  int64_t sequences = 0;
};

// When a worker that has nothing to do takes a batch, and how far it fills it. Pure: no clock, no
// thread, no state; each call is O(1).
//
// A batch is a prefix of the queue: the first sequence that does not fit ends it. Letting shorter
// ones overtake would fill the rest, but the one passed over would wait for their compute too, and
// under load the answer time of long sequences would depend on who else is there. As it is, nothing
// is overtaken inside a priority, each batch starts with the sequence that waits first (which
// always fits an empty batch), and what stays unused is less than the longest sequence: packed
// batches cost what they hold, so room that stays empty costs nothing.
class BatchPolicy {
 public:
  struct Limits {
    int64_t max_batch_tokens = 0;
    int64_t max_batch_sequences = 0;
    absl::Duration max_queue_delay =
        absl::ZeroDuration();  // zero: whoever is idle takes what there is
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
