// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/results/statistics.h"

namespace attendant::client {

enum class Change {
  kUnknown,  // too few batches for a confidence interval
  kUnclear,  // the confidence interval of the difference holds 0
  kBetter,
  kWorse,
  kNotJudged,  // p99.9 and max have no batches; requests_per_s of an open loop is its schedule's
};

// A setting that two loads do not share, as the reports have it.
struct SettingDifference {
  std::string name;  // "payload", "rate"
  std::string a, b;
  bool is_load = false;  // they sent unlike loads: the figures say nothing about the servers
};

// A figure of two loads, A and B. Latencies are response times in seconds.
struct ComparedFigure {
  std::string name;  // "requests_per_s", "error_rate", "mean", "p50", "p90", "p99", "p99.9", "max"
  double a = 0, b = 0;
  // The mean of B's batches minus that of A's, as a share of A's mean; for error_rate the plain
  // difference. The 95 % confidence holds for all six figures together: two loads of one server
  // differ clearly in any figure in at most 5 % of comparisons.
  std::optional<Estimate> difference;
  Change change = Change::kUnknown;

  bool is_share() const;  // of the requests, from 0 to 1
  // True for the figures that every long enough load has in batches: requests_per_s, error_rate,
  // mean.
  bool is_basic() const;
  // The difference in percent of A, whatever its sign; infinite from 0. REQUIRES: difference.
  double PercentOfA() const;
};

// Compares two reports of report_json.h. FAILED_PRECONDITION when one is none, or holds several
// loads, or when one is of an open loop and the other of a closed one.
absl::StatusOr<std::vector<ComparedFigure>> CompareReports(const nlohmann::ordered_json& a,
                                                           const nlohmann::ordered_json& b);

// All settings of the loads but the server's address and the seed. REQUIRES: CompareReports took
// them.
std::vector<SettingDifference> CompareSettings(const nlohmann::ordered_json& a,
                                               const nlohmann::ordered_json& b);

}  // namespace attendant::client
