// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batch_policy.h"

#include "kernels/core/check.h"

namespace attendant {

BatchPolicy::BatchPolicy(const Limits& limits) : limits_(limits) {
  ATTENDANT_CHECK(limits.max_batch_tokens > 0);
  ATTENDANT_CHECK(limits.max_batch_sequences > 0);
  ATTENDANT_CHECK(limits.max_queue_delay >= absl::ZeroDuration());
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

// Because batches are prefixes, totals are enough: a batch can be filled no further exactly when
// the queue holds a whole budget of tokens (met, or the next one does not fit) or of sequences.
bool BatchPolicy::Full(const QueueSnapshot& queue) const {
  return queue.tokens >= limits_.max_batch_tokens || queue.sequences >= limits_.max_batch_sequences;
}

}  // namespace attendant
