// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/request.h"

namespace attendant {

using RequestId = uint64_t;

// A request between admission and the end of its last batch. Everything is guarded by the batcher's
// lock, except what workers touch without it while `sequences_running` keeps the request alive:
// they read `request.sequences`, `request.outputs` and `request.layers`, which never change, and
// each writes the elements of `result.sequences` that belong to its own batch; or one runs
// `request.operation`. In the queue and in batches an operation is a sequence of its tokens.
struct AdmittedRequest {
  RequestId id = 0;  // rises with arrival
  PendingRequest request;
  absl::Time arrival;
  RequestResult result;

  // The queue's part: sequences [next_sequence, size) wait, and hold `tokens_waiting` tokens.
  bool queued = false;
  size_t next_sequence = 0;
  int64_t tokens_waiting = 0;

  // The batcher's part.
  int64_t sequences_running = 0;  // in batches that have not ended
  bool completed = false;  // request.done has been handed over; only running batches hold on to it

  int64_t sequences() const {
    return request.operation ? 1 : static_cast<int64_t>(request.sequences.size());
  }
  int64_t tokens(size_t sequence) const {
    return request.operation ? request.operation->tokens() : request.sequences[sequence].len();
  }
  int64_t sequences_waiting() const { return sequences() - static_cast<int64_t>(next_sequence); }
};

// One sequence of a batch.
struct BatchItem {
  AdmittedRequest* request = nullptr;
  size_t sequence = 0;

  int64_t tokens() const { return request->tokens(sequence); }
  // REQUIRES: not an operation.
  const SequenceInput& input() const { return request->request.sequences[sequence]; }
};

}  // namespace attendant
