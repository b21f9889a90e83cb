// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call/calls.h"
#include "server/threads/periodic_thread.h"

namespace attendant {

// Ends calls whose clients do not take their answers, on a thread of its own.
class SlowReaders {
 public:
  // A write may wait for `limit`; it is found at most a second later. `methods` and `metrics`,
  // which count the calls, must outlive this.
  SlowReaders(absl::Duration limit, std::vector<OpenMethod*> methods, ServerMetrics& metrics);

 private:
  void Cancel();

  const absl::Duration limit_;
  const std::vector<OpenMethod*> methods_;
  ServerMetrics& metrics_;
  PeriodicThread thread_;
};

}  // namespace attendant
