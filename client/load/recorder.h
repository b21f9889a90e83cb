// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/caller.h"
#include "client/load/histogram.h"
#include "client/load/interval_series.h"

namespace attendant::client {

// When a call should have been sent, was sent, and was answered, by a LoadClock.
struct CallTimes {
  absl::Duration intended, sent, finished;
};

struct Latency {
  absl::Duration mean, p50, p90, p99, p999, max;
};

struct LoadSummary {
  struct Error {
    int64_t count = 0;
    std::string first_message = {};
    absl::Duration p50 = {}, p99 = {}, max = {};  // response time
  };
  struct Server {  // means
    absl::Duration tokenize, queue, compute, total;
  };

  absl::Duration window;     // that was measured
  bool interrupted = false;  // before its end
  int64_t ok = 0;
  int64_t failed = 0;
  int64_t cut_off = 0;   // still running when the load was interrupted
  int64_t not_sent = 0;  // arrivals that found too many calls outstanding
  int64_t resent = 0;    // times that an answered request was sent again
  double requests_per_s = 0;
  double sequences_per_s = 0;
  std::optional<double> tokens_per_s;
  Latency response;  // from the intended time; of the requests that went well
  Latency service;   // of the same, from the time at which they were sent
  Latency send_lag;  // open loop: by how much the generator itself was late
  std::optional<Server> server;
  std::map<std::string, Error> errors;  // by gRPC code
};

// The whole distributions, and the course of a load.
struct LoadDetail {
  Histogram response_ns, service_ns;
  IntervalSeries series;  // from the window's begin
};

// Counts the results of a load. Times are those of a LoadClock. Response time runs from the time at
// which a request should have been sent, so it includes the wait behind a stall; service time runs
// from the time at which it was sent. Counts and latencies cover the requests that should have been
// sent inside the window. Throughput covers those that finished inside it. Thread-safe.
class Recorder {
 public:
  // Sees every call that finishes before an interrupt, also those outside the window. Runs on the
  // threads that call Finished, several at a time.
  using Observer = std::function<void(const CallTimes&, const CallResult&)>;

  // The window is [begin, end); end may be infinite.
  Recorder(absl::Duration begin, absl::Duration end, Observer observer = nullptr)
      : begin_(begin), observer_(std::move(observer)), end_(end) {}

  void Sent(absl::Duration intended, absl::Duration sent) ABSL_LOCKS_EXCLUDED(mutex_);
  void NotSent(absl::Duration intended) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finished(const CallTimes& times, const CallResult& result) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the window at `now`, if it is not over. Calls that run count when they finish.
  void EndWindow(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the window at `now`. Calls that finish later count as cut off, and nowhere else.
  void Interrupt(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Up to `now`. A window that is not over ends with the last request that has finished: there may
  // be no more.
  LoadSummary Summarize(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_);
  LoadDetail Detail() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Brings a copy of Detail().series up to date. Calls that finish meanwhile wait for the copy of
  // one interval, not of all.
  void CopySeries(IntervalSeries& copy) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool InWindow(absl::Duration time) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return time >= begin_ && time < end_;
  }
  // Returns false for a call that was cut off.
  bool CountFinished(const CallTimes& times, const CallResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountThroughput(const CallTimes& times, const CallResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountError(int64_t response_ns, const CallResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddServer(const Timings& timings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration begin_;
  const Observer observer_;
  mutable absl::Mutex mutex_;
  absl::Duration end_ ABSL_GUARDED_BY(mutex_);
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_finish_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  LoadDetail detail_ ABSL_GUARDED_BY(mutex_);
  Histogram send_lag_ns_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Histogram> error_response_ns_ ABSL_GUARDED_BY(mutex_);  // by gRPC code
  LoadSummary counts_ ABSL_GUARDED_BY(mutex_);  // only what is counted as it comes
  int64_t window_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t window_sequences_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<int64_t> window_tokens_ ABSL_GUARDED_BY(mutex_);
  std::optional<Timings> server_sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::client
