// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// Ends calls whose clients do not take their answers, on a thread of its own.
class SlowReaders {
 public:
  // OpenCalls::CancelSlow of a service's calls.
  using CancelSlow = std::function<int(WriteClock::time_point since)>;

  // A write may wait for `limit`; it is found at most a second later. `services` are called until
  // the destructor returns. `metrics` count the calls.
  SlowReaders(absl::Duration limit, std::vector<CancelSlow> services, ServerMetrics& metrics);
  ~SlowReaders();
  SlowReaders(const SlowReaders&) = delete;
  SlowReaders& operator=(const SlowReaders&) = delete;

 private:
  void Watch();

  const absl::Duration limit_;
  const std::vector<CancelSlow> services_;
  ServerMetrics& metrics_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant
