// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call/calls.h"
#include "server/threads/periodic_thread.h"

namespace attendant {

// Ends calls whose clients do not take their answers, on a thread of its own.
class SlowReaders {
 public:
  // OpenCalls::CancelSlow of a service's calls.
  using CancelSlow = std::function<int(WriteClock::time_point since)>;

  // A write may wait for `limit`; it is found at most a second later. `services` are called until
  // the destructor returns. `metrics` count the calls.
  SlowReaders(absl::Duration limit, std::vector<CancelSlow> services, ServerMetrics& metrics);

 private:
  void Cancel();

  const absl::Duration limit_;
  const std::vector<CancelSlow> services_;
  ServerMetrics& metrics_;
  PeriodicThread thread_;
};

}  // namespace attendant
