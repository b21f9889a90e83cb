// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/result.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kNegligibleLag = absl::Milliseconds(1);
constexpr double kLagShare = 0.1;
constexpr double kBusyShare = 0.9;

}  // namespace

std::string ClientBottleneck(const LoadResult& result) {
  const absl::Duration lag = result.summary.send_lag.p99;
  if (result.summary.ok > 0 && lag > kNegligibleLag &&
      lag > kLagShare * result.summary.response.p99) {
    return absl::StrCat("1 % of the requests were sent more than ",
                        absl::FormatDuration(absl::Trunc(lag, absl::Microseconds(1))),
                        " late by the load generator");
  }
  const double available_s = result.cost.wall_s * result.cost.processors;
  if (result.cost.wall_s >= 1 && result.cost.cpu_s > kBusyShare * available_s) {
    return absl::StrFormat("the load generator took %.0f %% of its %d processors",
                           100 * result.cost.cpu_s / available_s, result.cost.processors);
  }
  return "";
}

}  // namespace attendant::client
