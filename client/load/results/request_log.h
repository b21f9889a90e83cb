// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/recorder.h"

namespace attendant::client {

// Every call of a load as a line of JSON, in the form of AIPerf's profile_export.jsonl:
//   {"metadata": {"session_num", "request_start_ns", "request_end_ns", "intended_start_ns",
//                 "benchmark_phase": "warmup" or "profiling"},
//    "metrics": {"request_latency": service time, "response_time", "send_lag",
//                "input_sequence_length"},
//    "error": null or {"code", "message"}}
// Times in the metadata are nanoseconds since 1970; metrics are {"value", "unit"}, times in ms.
class RequestLog {
 public:
  // Lines go to `out`, which must outlive the log. The load began at `origin`; its window begins
  // after `warmup`.
  RequestLog(std::ostream& out, absl::Time origin, absl::Duration warmup)
      : out_(out), origin_(origin), warmup_(warmup) {}

  // Thread-safe.
  void Add(const CallTimes& times, const CallResult& result) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes what was added. One thread at a time.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call {
    CallTimes times;
    CallResult result;
  };
  void Write(const Call& call);

  std::ostream& out_;
  const absl::Time origin_;
  const absl::Duration warmup_;
  int64_t num_written_ = 0;
  absl::Mutex mutex_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::client
