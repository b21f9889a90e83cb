// SPDX-License-Identifier: Apache-2.0
#include "server/batching/forecast.h"

#include <algorithm>

namespace attendant {
namespace {

// Of a full batch of such sequences. REQUIRES: total.tokens > 0.
absl::Duration FullBatchTime(const BatchShape& total, const BatchCapacity& capacity) {
  const double part =
      static_cast<double>(capacity.max_batch_tokens) / static_cast<double>(total.tokens);
  const auto scaled = [part](int64_t value) {
    return static_cast<int64_t>(part * static_cast<double>(value));
  };
  return capacity.cost.Estimate({.sequences = scaled(total.sequences),
                                 .tokens = capacity.max_batch_tokens,
                                 .squares = scaled(total.squares),
                                 .head_ns = scaled(total.head_ns)});
}

}  // namespace

absl::Duration TimeFor(const BatchShape& total, const BatchCapacity& capacity) {
  if (total.tokens == 0) return absl::ZeroDuration();
  const int64_t batches = std::max<int64_t>(total.tokens / capacity.max_batch_tokens, 1);
  const BatchShape average{.sequences = total.sequences / batches,
                           .tokens = total.tokens / batches,
                           .squares = total.squares / batches,
                           .head_ns = total.head_ns / batches};
  return capacity.cost.Estimate(average) * batches / std::max<int64_t>(capacity.workers, 1);
}

absl::Duration AnswerTime(const Backlog& backlog, const BatchCapacity& capacity) {
  constexpr double kOfFirstBatch = 0.25;
  constexpr double kOfOthers = 1.2;
  if (!capacity.cost.fitted()) return absl::ZeroDuration();
  constexpr double kOfOverdue = 0.25;  // of each batch, see RequestQueue
  const absl::Duration same = TimeFor(backlog.same_priority, capacity);
  const absl::Duration all =
      backlog.until_free + std::min(TimeFor(backlog.higher, capacity) + same,
                                    backlog.max_priority_wait + same / kOfOverdue);
  const absl::Duration first = std::min(all, FullBatchTime(backlog.same_priority, capacity));
  return kOfFirstBatch * first + kOfOthers * (all - first);
}

absl::Duration TimeNeeded(const BatchShape& queued, const BatchCapacity& capacity) {
  constexpr double kDoubt = 1.5;
  const bool overload = queued.tokens > capacity.workers * capacity.max_batch_tokens;
  if (!capacity.cost.fitted() || !overload) return absl::ZeroDuration();
  return kDoubt * FullBatchTime(queued, capacity);
}

Forecast::Forecast(const CostModel& cost, int64_t max_batch_tokens, size_t workers)
    : cost_(cost),
      max_batch_tokens_(max_batch_tokens),
      free_at_(workers, absl::InfinitePast()),
      workers_left_(static_cast<int64_t>(workers)) {}

void Forecast::Begin(size_t worker, const BatchShape& batch, absl::Time now) {
  free_at_[worker] = now + cost_.Estimate(batch);
}

void Forecast::End(size_t worker) { free_at_[worker] = absl::InfinitePast(); }

void Forecast::Lose(size_t worker) {
  free_at_[worker] = absl::InfiniteFuture();
  --workers_left_;
}

void Forecast::Observe(const BatchShape& batch, absl::Duration time) { cost_.Observe(batch, time); }

BatchCapacity Forecast::capacity() const {
  return {.cost = cost_, .max_batch_tokens = max_batch_tokens_, .workers = workers_left_};
}

absl::Duration Forecast::UntilFree(absl::Time now) const {
  const absl::Time first = *std::min_element(free_at_.begin(), free_at_.end());
  return std::max(first - now, absl::ZeroDuration());
}

bool Forecast::TriesAnyway(const BatchShape& queued, absl::Time now) {
  constexpr int64_t kOneOf = 8;
  if (queued.sequences > 0 || UntilFree(now) > absl::ZeroDuration()) return false;
  return ++infeasible_while_idle_ % kOneOf == 0;
}

absl::Duration Forecast::RetryDelay(const BatchShape& queued) const {
  if (!cost_.known()) return absl::Milliseconds(100);
  return std::clamp(TimeFor(queued, capacity()), absl::Milliseconds(1), absl::Seconds(10));
}

}  // namespace attendant
