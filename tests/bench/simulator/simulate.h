// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "tests/bench/simulator/scheduler.h"
#include "tests/bench/simulator/trace.h"

namespace attendant::bench {

// The simulated times of one request.
struct Fate {
  absl::Duration wait;     // from its arrival until the last sequence entered a batch
  absl::Duration latency;  // until that batch ended
};

struct Outcome {
  std::vector<Fate> fates;                // [requests of the trace]
  std::vector<SimulatedBatch> batches{};  // in the order in which they ran
};

// Replays a trace with one worker and a simulated clock. Every request is answered.
Outcome Simulate(const Trace& trace, Scheduler& scheduler, const Costs& costs);

// Serves `clients` that each have one request under way. They send the trace's requests in order,
// each the next one `pause` after an answer to it; the trace's times become those at which they
// were sent. REQUIRES: one sequence a request.
Outcome SimulateClosedLoop(int clients, absl::Duration pause, Trace& trace, Scheduler& scheduler,
                           const Costs& costs);

// The least time that no more than 1 - share of the values exceed; zero of none.
absl::Duration Percentile(std::vector<absl::Duration> values, double share);

// Of the requests for which `wanted` holds.
std::vector<absl::Duration> Latencies(const Trace& trace, const Outcome& outcome,
                                      const std::function<bool(const Arrival&)>& wanted);

// The highest rate, in requests a second, at which 99 % of the mixed trace's requests are answered
// within `limit`. Found by bisection, within one percent.
using SchedulerFactory = std::function<std::unique_ptr<Scheduler>()>;
double Goodput(const SchedulerFactory& make, const Costs& costs, absl::Duration limit,
               int64_t requests, uint64_t seed);

}  // namespace attendant::bench
