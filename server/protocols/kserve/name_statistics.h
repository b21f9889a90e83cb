// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

struct DurationSum {
  uint64_t count = 0;
  absl::Duration total;
};

// KServe's ModelStatistics of one served name. A snapshot is consistent: the compute phases always
// have equal counts.
struct NameStatisticsSnapshot {
  absl::Time last_inference = absl::UnixEpoch();
  uint64_t inference_count = 0;  // sequences answered
  uint64_t execution_count = 0;  // batches run
  DurationSum success, fail, queue, compute_input, compute_infer, compute_output;  // per request
  struct Batch {
    DurationSum compute_infer;
  };
  std::map<int64_t, Batch> batches;  // by the number of sequences in the batch
};

// Counts the requests and the batches of one served name. Thread-safe.
class NameStatistics {
 public:
  struct Success {
    int64_t sequences = 0;
    absl::Duration total, queue, compute_input, compute_infer, compute_output;
  };
  void RecordSuccess(const Success& success, absl::Time now);
  void RecordFailure(absl::Duration total);
  void RecordBatch(int64_t sequences, absl::Duration compute);
  NameStatisticsSnapshot Snapshot() const;

 private:
  mutable absl::Mutex mutex_;
  NameStatisticsSnapshot totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
