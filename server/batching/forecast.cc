// SPDX-License-Identifier: Apache-2.0
#include "server/batching/forecast.h"

#include <algorithm>

namespace attendant {

absl::Duration TimeFor(const BatchShape& total, const Workforce& force) {
  if (total.tokens == 0) return absl::ZeroDuration();
  const int64_t batches = std::max<int64_t>(total.tokens / force.max_batch_tokens, 1);
  const BatchShape average{.sequences = total.sequences / batches,
                           .tokens = total.tokens / batches,
                           .squares = total.squares / batches};
  return force.cost.Estimate(average) * batches / std::max<int64_t>(force.workers, 1);
}

absl::Duration LeastAnswerTime(const Backlog& backlog, const Workforce& force) {
  constexpr double kCertain = 0.25;
  if (!force.cost.fitted()) return absl::ZeroDuration();
  const absl::Duration higher = std::min(TimeFor(backlog.higher, force), backlog.max_priority_wait);
  return kCertain * (backlog.until_free + higher + TimeFor(backlog.same_priority, force));
}

}  // namespace attendant
