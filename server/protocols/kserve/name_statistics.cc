// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/name_statistics.h"

#include <algorithm>

namespace attendant {
namespace {

void Add(DurationSum& sum, absl::Duration duration) {
  ++sum.count;
  sum.total += duration;
}

}  // namespace

void NameStatistics::RecordSuccess(const Success& success, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  totals_.last_inference = std::max(totals_.last_inference, now);
  totals_.inference_count += static_cast<uint64_t>(success.sequences);
  Add(totals_.success, success.total);
  Add(totals_.queue, success.queue);
  Add(totals_.compute_input, success.compute_input);
  Add(totals_.compute_infer, success.compute_infer);
  Add(totals_.compute_output, success.compute_output);
}

void NameStatistics::RecordFailure(absl::Duration total) {
  absl::MutexLock lock(&mutex_);
  Add(totals_.fail, total);
}

void NameStatistics::RecordBatch(int64_t sequences, absl::Duration compute) {
  absl::MutexLock lock(&mutex_);
  ++totals_.execution_count;
  Add(totals_.batches[sequences].compute_infer, compute);
}

NameStatisticsSnapshot NameStatistics::Snapshot() const {
  absl::MutexLock lock(&mutex_);
  return totals_;
}

}  // namespace attendant
