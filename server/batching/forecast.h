// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "server/batching/cost_model.h"

namespace attendant {

// How fast the workers of a batcher are. Pure.
struct Workforce {
  const CostModel& cost;
  int64_t max_batch_tokens = 0;
  int64_t workers = 1;
};

// The work that is computed before a request is answered, unless it is cancelled.
struct Backlog {
  absl::Duration until_free;  // until the first worker has ended its batch; zero: one is idle
  BatchShape same_priority;   // the request's own sequences, at least one, included
  BatchShape higher;          // of higher priorities
  absl::Duration max_priority_wait = absl::InfiniteDuration();
};

// How long all workers need for sequences of this total, in full batches. Zero as long as the cost
// is not known.
absl::Duration TimeFor(const BatchShape& total, const Workforce& force);

// By when a request with this backlog is answered, for its admission; zero without a fit. Of the
// first batch's time it counts a quarter: the estimate of one batch may be far off (on a noisy
// machine a fresh fit said 3.7 times the true time of one batch in a hundred), and what can be done
// must not be refused. Of the time of all further batches, whose errors average out, it counts six
// fifths: under overload every admitted request waits as long as this allows, and should not have
// been computed in vain.
absl::Duration AnswerTime(const Backlog& backlog, const Workforce& force);

// Under overload, a request with less time left than this is not worth a place in the next batch:
// half more than a full batch of `queued` takes. Zero when `queued` is no more than one batch for
// each worker, and without a fit.
absl::Duration TimeNeeded(const BatchShape& queued, const Workforce& force);

}  // namespace attendant
