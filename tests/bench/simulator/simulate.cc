// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulator/simulate.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/check.h"

namespace attendant::bench {
namespace {

// The members' requests as they stand once the batch has run.
void Record(const SimulatedBatch& batch, absl::Time start, absl::Time end, const Trace& trace,
            Outcome& outcome) {
  for (const Member& member : batch.members) {
    outcome.fates[member.request] = {.wait = start - trace[member.request].at,
                                     .latency = end - trace[member.request].at};
  }
}

// Replays the trace; requests that are not sent yet are in the infinite future. `ended` hears of
// each batch when it ends.
Outcome Run(const Trace& trace, Scheduler& scheduler, const Costs& costs,
            const std::function<void(const SimulatedBatch&, absl::Time)>& ended) {
  Outcome outcome{.fates = std::vector<Fate>(trace.size())};
  size_t arrived = 0;
  absl::Time now = TraceStart();
  while (true) {
    for (; arrived < trace.size() && trace[arrived].at <= now; ++arrived) {
      scheduler.Arrive(arrived, trace[arrived]);
    }
    SimulatedBatch batch = scheduler.Take(now);
    if (batch.members.empty()) {
      const absl::Time next = arrived < trace.size() ? trace[arrived].at : absl::InfiniteFuture();
      now = std::min(next, batch.wait_until);
      if (now == absl::InfiniteFuture()) return outcome;
      continue;
    }
    const absl::Time end = now + costs.Of(batch.computed);
    ATTENDANT_CHECK(end > now);
    Record(batch, now, end, trace, outcome);
    ended(batch, end);
    outcome.batches.push_back(std::move(batch));
    now = end;
  }
}

bool InTime(const Trace& trace, const Outcome& outcome, absl::Duration limit) {
  return Percentile(Latencies(trace, outcome, [](const Arrival&) { return true; }), 0.99) <= limit;
}

}  // namespace

Outcome Simulate(const Trace& trace, Scheduler& scheduler, const Costs& costs) {
  return Run(trace, scheduler, costs, [](const SimulatedBatch&, absl::Time) {});
}

Outcome SimulateClosedLoop(int clients, absl::Duration pause, Trace& trace, Scheduler& scheduler,
                           const Costs& costs) {
  for (Arrival& arrival : trace) arrival.at = absl::InfiniteFuture();
  auto next = trace.begin();
  const auto send = [&](absl::Time at) {
    if (next != trace.end()) (next++)->at = at;
  };
  for (int client = 0; client < clients; ++client) send(TraceStart());
  return Run(trace, scheduler, costs, [&](const SimulatedBatch& batch, absl::Time end) {
    for (size_t i = 0; i < batch.members.size(); ++i) send(end + pause);
  });
}

absl::Duration Percentile(std::vector<absl::Duration> values, double share) {
  if (values.empty()) return absl::ZeroDuration();
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto at = values.begin() + std::max<long>(static_cast<long>(rank) - 1, 0);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::vector<absl::Duration> Latencies(const Trace& trace, const Outcome& outcome,
                                      const std::function<bool(const Arrival&)>& wanted) {
  std::vector<absl::Duration> latencies;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (wanted(trace[i])) latencies.push_back(outcome.fates[i].latency);
  }
  return latencies;
}

double Goodput(const SchedulerFactory& make, const Costs& costs, absl::Duration limit,
               int64_t requests, uint64_t seed) {
  const auto keeps_up = [&](double rate) {
    const Trace trace = MixedTrace(requests, rate, seed);
    const std::unique_ptr<Scheduler> scheduler = make();
    return InTime(trace, Simulate(trace, *scheduler, costs), limit);
  };
  double low = 0;
  double high = 1;
  while (keeps_up(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 0.005 * high) {
    const double middle = (low + high) / 2;
    (keeps_up(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace attendant::bench
