// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/caller.h"
#include "client/load/histogram.h"

namespace attendant::client {

struct LoadSummary {
  struct Error {
    int64_t count = 0;
    std::string first_message = {};
    absl::Duration p50 = {}, p99 = {}, max = {};  // latency
  };
  struct Server {  // means
    absl::Duration tokenize, queue, compute, total;
  };

  absl::Duration window;  // that was measured
  int64_t ok = 0;
  int64_t failed = 0;
  int64_t cut_off = 0;   // still running when the load was interrupted
  int64_t not_sent = 0;  // arrivals that found too many calls outstanding
  double requests_per_s = 0;
  double sequences_per_s = 0;
  std::optional<double> tokens_per_s;
  absl::Duration mean, p50, p90, p99, p999, max;  // of the requests that went well
  absl::Duration max_send_lag;  // open loop: by how much the generator itself was late, at most
  std::optional<Server> server;
  std::map<std::string, Error> errors;  // by gRPC code
};

// Counts the results of a load. Times are those of a LoadClock. Latency runs from the time at which
// a request should have been sent, so it includes the wait behind a stall. Counts and latencies
// cover the requests that should have been sent inside the window. Throughput covers those that
// finished inside it. Thread-safe.
class Recorder {
 public:
  // The window is [begin, end); end may be infinite.
  Recorder(absl::Duration begin, absl::Duration end) : begin_(begin), end_(end) {}

  void Sent(absl::Duration intended, absl::Duration sent) ABSL_LOCKS_EXCLUDED(mutex_);
  void NotSent(absl::Duration intended) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finished(absl::Duration intended, absl::Duration finished, const CallResult& result)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the window at `now`. Calls that finish later count as cut off, and nowhere else.
  void Interrupt(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Up to `now`. An endless window ends with the last request.
  LoadSummary Summarize(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool InWindow(absl::Duration time) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return time >= begin_ && time < end_;
  }
  void AddServer(const Timings& timings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration begin_;
  mutable absl::Mutex mutex_;
  absl::Duration end_ ABSL_GUARDED_BY(mutex_);
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_finish_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  Histogram latency_ns_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Histogram> error_latency_ns_ ABSL_GUARDED_BY(mutex_);  // by gRPC code
  LoadSummary counts_ ABSL_GUARDED_BY(mutex_);  // only what is counted as it comes
  int64_t window_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t window_sequences_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<int64_t> window_tokens_ ABSL_GUARDED_BY(mutex_);
  std::optional<Timings> server_sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::client
