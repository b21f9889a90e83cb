// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace attendant {

// The policy's view of a queue.
struct QueueSnapshot {
  int64_t tokens = 0;     // of all waiting sequences
  int64_t sequences = 0;  // waiting
  int64_t head_ns = 0;    // of all waiting sequences
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

// Decides when an idle worker takes a batch, and how requests share it: RequestQueue::TakeBatch
// walks through the requests and asks. Pure: no clock, no thread, no state; each call is O(1).
//
// Requests share batches by deficit round robin: when it is a request's turn it may take so many
// tokens more, and what it does not use is kept for its next turn. A request that a full batch
// holds is served whole in its first turn, in order of arrival: taken in parts among others, it
// would be answered as late as the last of them. A larger one takes a quantum, a quarter of a
// batch, and then everybody else has a turn; a sequence of it that is longer than a quantum saves
// up for it over some turns, five at most.
class BatchPolicy {
 public:
  struct Limits {
    int64_t max_batch_tokens = 0;
    int64_t max_batch_sequences = 0;
    absl::Duration max_queue_delay = absl::ZeroDuration();  // zero: an idle worker never waits
    absl::Duration max_priority_wait = absl::InfiniteDuration();
  };

  // REQUIRES: limits are positive, the durations are not negative.
  explicit BatchPolicy(const Limits& limits);

  // The decision of an idle worker at `now`: run a batch, or wait. With a max_queue_delay it waits
  // for a full batch, at most until the oldest sequence has waited that long.
  BatchDecision Decide(const QueueSnapshot& queue, absl::Time now) const;

  // True if a sequence of `len` tokens fits into a batch that holds `fill`.
  bool Fits(const BatchFill& fill, int64_t len) const;

  // A quarter of a batch, in tokens. At least 1.
  int64_t quantum() const;

  // The tokens that a request may take more at its turn, when so many of its own wait. At
  // least 1.
  int64_t Turn(int64_t waiting) const;

  // The tokens that it takes in all the turns that another request needs for `tokens`. At most
  // `waiting`.
  int64_t TakenMeanwhile(int64_t waiting, int64_t tokens) const;

  // True if a sequence of `len` tokens is long: longer than a quantum.
  bool Long(int64_t len) const { return len > quantum(); }

  // The share of a batch that a sequence of `len` tokens uses up, in tokens: `len`, or
  // max_batch_tokens / max_batch_sequences if that is more. At most a full batch.
  int64_t Part(int64_t len) const;

  // True if a request without progress since `waiting_since` is overdue, and is served whatever its
  // priority.
  bool Overdue(absl::Time waiting_since, absl::Time now) const;

 private:
  bool Full(const QueueSnapshot& queue) const;

  Limits limits_;
};

}  // namespace attendant
