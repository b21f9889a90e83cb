// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/core/outputs.h"
#include "kernels/core/packed_batch.h"

namespace attendant {

class ThreadPool;

// The largest batch a session takes; it allocates for that when it is made, and never again.
struct SessionLimits {
  int64_t max_batch_tokens = 0;
  int64_t max_batch_sequences = 0;
};

// Every session checks this before it runs: INVALID_ARGUMENT with both numbers when the batch is
// larger than `limits`, or `spec` does not have one entry for each sequence.
absl::Status CheckSessionLimits(const PackedBatch& batch, const OutputSpec& spec,
                                const SessionLimits& limits);

// One worker's private execution state: scratch memory, threads, compiled primitives.
// Thread-confined: one thread at a time calls it.
class Session {
 public:
  virtual ~Session() = default;

  // Runs the encoder over `batch` and points `outputs` at the results; the outputs of spec.layers
  // are written into the memory that it names. A sequence's results are the same bits whatever else
  // is in the batch, wherever it stands in it and whatever else is asked for.
  // REQUIRES: every sequence passed ValidateSequence; spec.sequences.size() == batch.batch(); the
  // layers and heads of spec.layers are the model's.
  // INVALID_ARGUMENT beyond the session's limits; INTERNAL when a kernel fails. The session stays
  // usable. UNAVAILABLE when its device is lost: this session never works again.
  virtual absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) = 0;

  // Lets Run end early while `*stop` is true, with undefined results: no request waits for them.
  // Null: never. `stop` must live until the next call. A session may ignore it.
  virtual void StopWhen(const std::atomic<bool>* /*stop*/) {}

  // The calling thread is the one that calls Run from now on: it takes its place in the session's
  // team.
  virtual void PlaceCaller() {}

  // The session's threads, for work on its outputs between two of its Runs, by the caller of Run.
  // Null: it has none.
  virtual ThreadPool* pool() { return nullptr; }

  // Bytes that the session holds for itself; they do not grow.
  virtual int64_t arena_bytes() const { return 0; }
};

}  // namespace attendant
