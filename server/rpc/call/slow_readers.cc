// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/slow_readers.h"

#include <utility>

namespace attendant {

SlowReaders::SlowReaders(absl::Duration limit, std::vector<CancelSlow> services,
                         ServerMetrics& metrics)
    : limit_(limit),
      services_(std::move(services)),
      metrics_(metrics),
      thread_([this] { Watch(); }) {}

SlowReaders::~SlowReaders() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void SlowReaders::Watch() {
  constexpr absl::Duration kInterval = absl::Seconds(1);
  const auto limit = absl::ToChronoNanoseconds(limit_);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kInterval)) return;
    }
    const WriteClock::time_point since = WriteClock::now() - limit;
    for (const CancelSlow& cancel : services_) {
      for (int i = cancel(since); i > 0; --i) metrics_.CountRefused(Refusal::kSlowReader);
    }
  }
}

}  // namespace attendant
