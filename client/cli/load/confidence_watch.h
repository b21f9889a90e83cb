// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/load/clock.h"
#include "client/load/recorder.h"

namespace attendant::client {

// Looks once a second whether latency is known well enough: whether the 95 % confidence interval of
// its p99, or where batches do not tell that of its mean, is within so many percent of it. It looks
// on a thread of its own: figures of minutes take too long for the one that sends the requests.
class ConfidenceWatch {
 public:
  // The window begins after `warmup`. 0 percent: never. Recorder and clock must outlive the watch.
  ConfidenceWatch(const Recorder& recorder, const LoadClock& clock, absl::Duration warmup,
                  double percent);
  ~ConfidenceWatch();
  ConfidenceWatch(const ConfidenceWatch&) = delete;
  ConfidenceWatch& operator=(const ConfidenceWatch&) = delete;

  // Stays true. Thread-safe.
  bool reached() const { return reached_.HasBeenNotified(); }

 private:
  void Run();
  // Waits for the end of the watch, at most an interval.
  bool IsStopped();

  const Recorder& recorder_;
  const LoadClock& clock_;
  const absl::Duration warmup_;
  const double percent_;
  absl::Notification reached_;
  // std::, since the waits of Abseil's mutex use the wall clock.
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;   // under mutex_
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attendant::client
