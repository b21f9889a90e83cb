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

// What is certain to be computed before a request is answered, but for what is cancelled.
struct Backlog {
  absl::Duration until_free;  // until the first worker has ended its batch; zero: one is idle
  BatchShape same_priority;   // the request's own sequences included
  BatchShape higher;          // of higher priorities
  absl::Duration max_priority_wait = absl::InfiniteDuration();
};

// How long all workers need for sequences of this total, in full batches. Zero as long as the cost
// is not known.
absl::Duration TimeFor(const BatchShape& total, const Workforce& force);

// A request is answered no sooner than this from now, even if the cost model says four times the
// true time: a quarter of what it says. (On a noisy machine a fresh fit said 3.7 times the true
// time of one batch in a hundred.) Zero without a fit.
absl::Duration LeastAnswerTime(const Backlog& backlog, const Workforce& force);

}  // namespace attendant
