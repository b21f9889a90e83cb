// SPDX-License-Identifier: Apache-2.0
#include "server/batching/forecast.h"

#include <algorithm>

namespace attendant {
namespace {

// Of a full batch of such sequences. REQUIRES: total.tokens > 0.
absl::Duration FullBatchTime(const BatchShape& total, const Workforce& force) {
  const double part =
      static_cast<double>(force.max_batch_tokens) / static_cast<double>(total.tokens);
  const auto scaled = [part](int64_t value) {
    return static_cast<int64_t>(part * static_cast<double>(value));
  };
  return force.cost.Estimate({.sequences = scaled(total.sequences),
                              .tokens = force.max_batch_tokens,
                              .squares = scaled(total.squares),
                              .head_ns = scaled(total.head_ns)});
}

}  // namespace

absl::Duration TimeFor(const BatchShape& total, const Workforce& force) {
  if (total.tokens == 0) return absl::ZeroDuration();
  const int64_t batches = std::max<int64_t>(total.tokens / force.max_batch_tokens, 1);
  const BatchShape average{.sequences = total.sequences / batches,
                           .tokens = total.tokens / batches,
                           .squares = total.squares / batches,
                           .head_ns = total.head_ns / batches};
  return force.cost.Estimate(average) * batches / std::max<int64_t>(force.workers, 1);
}

absl::Duration AnswerTime(const Backlog& backlog, const Workforce& force) {
  constexpr double kOfFirstBatch = 0.25;
  constexpr double kOfOthers = 1.2;
  if (!force.cost.fitted()) return absl::ZeroDuration();
  constexpr double kOfOverdue = 0.25;  // of each batch, see RequestQueue
  const absl::Duration same = TimeFor(backlog.same_priority, force);
  const absl::Duration all =
      backlog.until_free + std::min(TimeFor(backlog.higher, force) + same,
                                    backlog.max_priority_wait + same / kOfOverdue);
  const absl::Duration first = std::min(all, FullBatchTime(backlog.same_priority, force));
  return kOfFirstBatch * first + kOfOthers * (all - first);
}

absl::Duration TimeNeeded(const BatchShape& queued, const Workforce& force) {
  constexpr double kDoubt = 1.5;
  const bool overload = queued.tokens > force.workers * force.max_batch_tokens;
  if (!force.cost.fitted() || !overload) return absl::ZeroDuration();
  return kDoubt * FullBatchTime(queued, force);
}

}  // namespace attendant
