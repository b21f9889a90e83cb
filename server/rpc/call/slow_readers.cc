// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/slow_readers.h"

#include <utility>

namespace attendant {

SlowReaders::SlowReaders(absl::Duration limit, std::vector<OpenMethod*> methods,
                         ServerMetrics& metrics)
    : limit_(limit),
      methods_(std::move(methods)),
      metrics_(metrics),
      thread_("slow-readers", absl::Seconds(1), [this] { Cancel(); }) {}

void SlowReaders::Cancel() {
  const WriteClock::time_point since = WriteClock::now() - absl::ToChronoNanoseconds(limit_);
  for (OpenMethod* method : methods_) {
    for (int i = method->CancelSlow(since); i > 0; --i) metrics_.CountRefused(Refusal::kSlowReader);
  }
}

}  // namespace attendant
