// SPDX-License-Identifier: Apache-2.0
#include "server/batching/running_batches.h"

#include <algorithm>

namespace attendant {

RunningBatches::RunningBatches(size_t workers) : workers_(workers), abandoned_(workers) {}

void RunningBatches::Begin(size_t worker, std::span<const BatchItem> items, absl::Time stalls_at) {
  workers_[worker] = {.stalls_at = stalls_at, .items = items};
  abandoned_[worker] = false;
}

void RunningBatches::End(size_t worker) { workers_[worker] = {}; }

void RunningBatches::Abandon() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const std::span<const BatchItem> items = workers_[i].items;
    const bool awaited = std::any_of(
        items.begin(), items.end(), [](const BatchItem& item) { return !item.request->completed; });
    if (!items.empty() && !awaited) abandoned_[i] = true;
  }
}

absl::Time RunningBatches::FindStalled(absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  stalled_ = 0;
  for (Worker& worker : workers_) {
    worker.stalled = worker.stalls_at <= now;
    stalled_ += worker.stalled ? 1 : 0;
    if (!worker.stalled) next = std::min(next, worker.stalls_at);
  }
  return next;
}

}  // namespace attendant
