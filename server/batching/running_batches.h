// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/queued_request.h"

namespace attendant {

// The batches that the workers of one batcher run: which of them take too long, and which nobody
// waits for any more. It has no clock and no lock; not thread-safe, except for what abandoned()
// points to.
class RunningBatches {
 public:
  explicit RunningBatches(size_t workers);

  // A worker, from 0, begins a batch and ends it. `items` stay as they are until then. The batch
  // counts as stalled from `stalls_at` on.
  void Begin(size_t worker, std::span<const BatchItem> items, absl::Time stalls_at);
  void End(size_t worker);

  // Abandons the batches whose requests have all completed.
  void Abandon();
  // Whether the worker's batch was abandoned, until its next one begins. Any thread may read it.
  const std::atomic<bool>* abandoned(size_t worker) const { return &abandoned_[worker]; }

  // Finds the batches that have stalled by `now`. Returns when the next one will.
  absl::Time FindStalled(absl::Time now);
  // As the last FindStalled found it: the worker's batch, and how many of those that it saw.
  bool stalled(size_t worker) const { return workers_[worker].stalled; }
  int stalled() const { return stalled_; }

 private:
  struct Worker {
    absl::Time stalls_at = absl::InfiniteFuture();
    std::span<const BatchItem> items;
    bool stalled = false;
  };

  std::vector<Worker> workers_;
  std::vector<std::atomic<bool>> abandoned_;  // [workers]
  int stalled_ = 0;
};

}  // namespace attendant
