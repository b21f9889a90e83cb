// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/slow_readers.h"

#include <utility>

namespace attendant {

SlowReaders::SlowReaders(absl::Duration limit, std::vector<CancelSlow> services,
                         ServerMetrics& metrics)
    : limit_(limit),
      services_(std::move(services)),
      metrics_(metrics),
      thread_("slow-readers", absl::Seconds(1), [this] { Cancel(); }) {}

void SlowReaders::Cancel() {
  const WriteClock::time_point since = WriteClock::now() - absl::ToChronoNanoseconds(limit_);
  for (const CancelSlow& cancel : services_) {
    for (int i = cancel(since); i > 0; --i) metrics_.CountRefused(Refusal::kSlowReader);
  }
}

}  // namespace attendant
