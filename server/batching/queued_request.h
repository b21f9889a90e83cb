// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "server/batching/request.h"

namespace attendant {

using RequestId = uint64_t;

// The state of a request in its queue. Only the queue uses it.
struct QueuePlace {
  uint64_t turn = 0;         // order among the requests of its client and priority
  bool in_turn = false;      // it got its quantum and still has this turn
  int64_t deficit = 0;       // tokens that it may take; rises by a quantum each turn
  absl::Time waiting_since;  // arrival, or when a batch last took one of its sequences
};

// A request from Submit until `done`, with what its queue and its batcher note. In the queue and in
// batches an operation counts as one sequence of cost() tokens.
//
// The batcher's lock guards all members, with one exception: while `sequences_running` is not 0,
// workers read `work` and write its results without the lock. Each worker writes those of its own
// batch only.
struct QueuedRequest : WorkRequest {
  QueuedRequest() = default;
  explicit QueuedRequest(WorkRequest request) : WorkRequest(std::move(request)) {}

  RequestId id = 0;    // rises with arrival
  absl::Time arrival;  // steady clock
  bool queued = false;
  QueuePlace place;
  size_t next_sequence = 0;       // sequences [next_sequence, num_sequences()) wait
  int64_t tokens_waiting = 0;     // of the sequences that wait
  int64_t head_ns_waiting = 0;    // likewise
  int64_t sequences_running = 0;  // in batches that have not ended
  bool completed = false;         // `done` has been handed over
  absl::Duration queue, compute;  // so far, as in FinishedWork

  int64_t num_sequences() const {
    return is_operation() ? 1 : static_cast<int64_t>(encode().sequences.size());
  }
  int64_t sequences_waiting() const {
    return num_sequences() - static_cast<int64_t>(next_sequence);
  }
  int64_t sequence_tokens(size_t sequence) const {
    return is_operation() ? operation().cost() : encode().sequences[sequence].len();
  }
  int64_t sequence_head_ns(size_t sequence) const {
    return is_operation() ? 0 : encode().sequences[sequence].head_ns;
  }
  int64_t tokens() const {
    int64_t sum = 0;
    for (size_t i = 0; i < static_cast<size_t>(num_sequences()); ++i) sum += sequence_tokens(i);
    return sum;
  }
  int64_t head_ns() const {
    int64_t sum = 0;
    for (size_t i = 0; i < static_cast<size_t>(num_sequences()); ++i) sum += sequence_head_ns(i);
    return sum;
  }
};

// One sequence of a batch, or one operation.
struct BatchItem {
  QueuedRequest* request = nullptr;
  size_t sequence = 0;

  int64_t tokens() const { return request->sequence_tokens(sequence); }
  int64_t head_ns() const { return request->sequence_head_ns(sequence); }
  int64_t computed_tokens() const {
    return request->is_operation() ? request->operation().tokens() : tokens();
  }
};

}  // namespace attendant
