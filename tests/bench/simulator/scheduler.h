// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/cost_model.h"
#include "tests/bench/simulator/trace.h"

namespace attendant::bench {

// A sequence in a batch: its request by its place in the trace.
struct Member {
  size_t request = 0;
  int64_t len = 0;
};

struct SimulatedBatch {
  std::vector<Member> members;                     // empty: nothing to run now
  BatchShape computed{};                           // padding included
  absl::Time wait_until = absl::InfiniteFuture();  // when empty: ask again then
};

// The time of a batch, in milliseconds for each unit.
struct Costs {
  double batch_ms = 0;
  double sequence_ms = 0;
  double token_ms = 0;
  double square_ms = 0;

  absl::Duration Of(const BatchShape& shape) const;
};

// A way to make batches. The simulator asks it when its one worker is idle.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual std::string name() const = 0;
  virtual void Arrive(size_t index, const Arrival& arrival) = 0;
  virtual SimulatedBatch Take(absl::Time now) = 0;
};

struct SchedulerOptions {
  int64_t max_batch_tokens = 1024;  // padding included, where there is some
  int64_t max_batch_sequences = 256;
  Costs costs{};  // for those who plan with them
};

// The server's own RequestQueue and BatchPolicy. Batches are packed: no padding.
std::unique_ptr<Scheduler> MakeAttendant(const SchedulerOptions& options);

// In order of arrival, padded to the batch's longest; as text-embeddings-inference batches where
// its back end pads.
std::unique_ptr<Scheduler> MakePaddedFifo(const SchedulerOptions& options);

// Collects for 10 ms, longer while the worker is busy, then sorts by length and cuts; as SIE does.
std::unique_ptr<Scheduler> MakeSortedWindow(const SchedulerOptions& options);

// Plans everything that waits anew for each batch: the cheapest way to cut the sorted lengths into
// padded batches, by dynamic programming over the costs; runs the batch with the oldest request. As
// TurboTransformers and Razor's Edge do.
std::unique_ptr<Scheduler> MakePaddedProgram(const SchedulerOptions& options);

}  // namespace attendant::bench
