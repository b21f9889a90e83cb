// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/time/time.h"
#include "client/load/results/result.h"

namespace attendant::client {

// A table for people. Ends in a line break.
std::string FormatReport(const LoadResult& result);

// The heading and a line of the table of several loads, one for each rate.
std::string SweepHeading();
std::string SweepLine(const LoadResult& result);
// Lines for behind the table: the loads in which the client was the bottleneck.
std::string SweepWarnings(std::span<const LoadResult> results);

// "open loop, 200 requests/s at random times on 1 connection, at most 10000 outstanding"
std::string DescribePlan(const LoadPlan& plan);

// Three significant digits and a suitable unit: "850 us", "12.3 ms", "1.50 s".
std::string ShortDuration(absl::Duration duration);

// "98.5", "1,234"
std::string FormatRate(double per_s);

}  // namespace attendant::client
