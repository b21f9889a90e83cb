// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/cost_model.h"

namespace attendant {

// The compute capacity of a batcher: the cost of a batch, its token budget and the number of
// workers.
struct BatchCapacity {
  CostModel cost;
  int64_t max_batch_tokens = 0;
  int64_t workers = 1;
};

// The work that is computed before a request is answered, unless it is cancelled.
struct Backlog {
  absl::Duration until_free;  // Forecast::UntilFree
  BatchShape same_priority;   // the request's own sequences, at least one, included
  BatchShape higher;          // of higher priorities
  absl::Duration max_priority_wait = absl::InfiniteDuration();
};

// The time that all workers together need for sequences of this total, in full batches. Zero as
// long as the cost is not known. Pure.
absl::Duration TimeFor(const BatchShape& total, const BatchCapacity& capacity);

// The time until a request with this backlog is answered, for its admission; zero without a fit. It
// counts a quarter of the first batch's time: the estimate of one batch may be far off (on a noisy
// machine a fresh fit said 3.7 times the true time of one batch in a hundred), and what can be done
// must not be refused. It counts six fifths of the time of all further batches, whose errors
// average out: under overload every admitted request waits as long as this allows, and should not
// have been computed in vain.
absl::Duration AnswerTime(const Backlog& backlog, const BatchCapacity& capacity);

// Under overload, a request with less time left than this is not worth a place in the next batch:
// half more than a full batch of `queued` takes. Zero when `queued` is no more than one batch for
// each worker, and without a fit.
absl::Duration TimeNeeded(const BatchShape& queued, const BatchCapacity& capacity);

// The state behind the forecasts of one batcher: the cost of batches as those that ran correct it,
// and when each worker has ended its batch. It has no clock; not thread-safe.
class Forecast {
 public:
  // REQUIRES: workers > 0; all are idle.
  Forecast(const CostModel& cost, int64_t max_batch_tokens, size_t workers);

  // A worker, from 0, begins a batch and ends it.
  void Begin(size_t worker, const BatchShape& batch, absl::Time now);
  void End(size_t worker);
  // A worker without a batch takes no more.
  void Lose(size_t worker);
  // A batch was computed, and took `time`: this corrects the cost.
  void Observe(const BatchShape& batch, absl::Duration time);

  // The capacity for the functions above, as it is now.
  BatchCapacity capacity() const;
  // The time until the first worker ends its batch. Zero: a worker is idle, or past its estimated
  // end. Infinite: all workers are lost.
  absl::Duration UntilFree(absl::Time now) const;

  // True if a request is tried although the forecast misses its deadline: every eighth such
  // request, while nothing is queued and a worker is free. Only batches that run correct the cost.
  // If an idle server refused all requests, the cost would stay too high after some slow minutes of
  // the machine.
  bool TriesAnyway(const BatchShape& queued, absl::Time now);

  // The retry delay for a refused client: the time that the workers need for the queue, from 1 ms
  // to 10 s.
  absl::Duration RetryDelay(const BatchShape& queued) const;

 private:
  CostModel cost_;
  const int64_t max_batch_tokens_;
  // [workers]; infinite past: idle; infinite future: lost; else it is busy, and free by then.
  std::vector<absl::Time> free_at_;
  int64_t workers_left_;  // that are not lost
  int64_t infeasible_while_idle_ = 0;
};

}  // namespace attendant
