// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batch_policy.h"

#include <algorithm>

#include "kernels/core/base/int_math.h"
#include "kernels/core/check.h"

namespace attendant {

BatchPolicy::BatchPolicy(const Limits& limits) : limits_(limits) {
  ATTENDANT_CHECK(limits.max_batch_tokens > 0);
  ATTENDANT_CHECK(limits.max_batch_sequences > 0);
  ATTENDANT_CHECK(limits.max_queue_delay >= absl::ZeroDuration());
  ATTENDANT_CHECK(limits.max_priority_wait >= absl::ZeroDuration());
}

BatchDecision BatchPolicy::Decide(const QueueSnapshot& queue, absl::Time now) const {
  if (queue.sequences == 0) return {};
  const bool patient = limits_.max_queue_delay > absl::ZeroDuration();
  if (!patient || queue.draining || Full(queue)) return {.run = true};
  const absl::Time ripe = queue.oldest_arrival + limits_.max_queue_delay;
  if (now >= ripe) return {.run = true};
  return {.wait_until = ripe};
}

bool BatchPolicy::Fits(const BatchFill& fill, int64_t len) const {
  return fill.sequences < limits_.max_batch_sequences &&
         len <= limits_.max_batch_tokens - fill.tokens;
}

int64_t BatchPolicy::quantum() const { return std::max<int64_t>(limits_.max_batch_tokens / 4, 1); }

int64_t BatchPolicy::Turn(int64_t waiting) const {
  return waiting <= limits_.max_batch_tokens ? std::max<int64_t>(waiting, 1) : quantum();
}

int64_t BatchPolicy::TakenMeanwhile(int64_t waiting, int64_t tokens) const {
  const int64_t turns = CeilDivide(tokens, Turn(tokens));
  return std::min(waiting, turns * Turn(waiting));
}

int64_t BatchPolicy::Part(int64_t len) const {
  return std::max(len, limits_.max_batch_tokens / limits_.max_batch_sequences);
}

bool BatchPolicy::Overdue(absl::Time waiting_since, absl::Time now) const {
  return now - waiting_since >= limits_.max_priority_wait;
}

// A queue that holds a whole budget of tokens or of sequences fills a batch well enough: the rest
// of the batch is shorter than the next sequence.
bool BatchPolicy::Full(const QueueSnapshot& queue) const {
  return queue.tokens >= limits_.max_batch_tokens || queue.sequences >= limits_.max_batch_sequences;
}

}  // namespace attendant
