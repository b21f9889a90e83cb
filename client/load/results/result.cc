// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/result.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kNegligibleLag = absl::Milliseconds(1);
constexpr double kLagShare = 0.1;
constexpr double kBusyShare = 0.9;
constexpr double kBacklogShare = 0.03;

}  // namespace

std::string ClientBottleneck(const LoadResult& result) {
  const absl::Duration lag = result.summary.send_lag.p99;
  if (result.summary.ok > 0 && lag > kNegligibleLag &&
      lag > kLagShare * result.summary.response.p99) {
    return absl::StrCat("1 % of the requests were sent more than ",
                        absl::FormatDuration(absl::Trunc(lag, absl::Microseconds(1))),
                        " late by the load generator");
  }
  const ClientCost& cost = result.cost;
  if (cost.wall_s < 1) return "";
  // The senders and readers are few threads: on many processors one is full long before these are.
  if (cost.busiest_thread_s > kBusyShare * cost.wall_s) {
    return absl::StrFormat("a thread of the load generator was busy for %.0f %% of the time",
                           100 * cost.busiest_thread_s / cost.wall_s);
  }
  const double available_s = cost.wall_s * cost.processors;
  if (cost.cpu_s > kBusyShare * available_s) {
    return absl::StrFormat("the load generator took %.0f %% of its %d processors",
                           100 * cost.cpu_s / available_s, cost.processors);
  }
  return "";
}

bool FallsBehind(const LoadResult& result) {
  const LoadSummary& summary = result.summary;
  const double came = static_cast<double>(summary.ok);
  const double answered = summary.requests_per_s * absl::ToDoubleSeconds(summary.window);
  const double burst = static_cast<double>(result.description.plan.arrivals.burst);
  return came - answered > kBacklogShare * came + std::sqrt(came * burst);
}

}  // namespace attendant::client
