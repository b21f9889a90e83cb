// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/comparison.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Report = nlohmann::ordered_json;

constexpr const char* kThroughput = "requests_per_s";
constexpr const char* kLatencies[] = {"mean", "p50", "p90", "p99", "p99.9", "max"};

bool HasFigures(const Report& report) {
  if (!report.is_object() || !report.contains(kThroughput) || !report[kThroughput].is_number() ||
      !report.contains("latency_s") || !report["latency_s"].is_object()) {
    return false;
  }
  for (const char* name : kLatencies) {
    if (!report["latency_s"].contains(name) || !report["latency_s"][name].is_number()) return false;
  }
  return true;
}

absl::Status CheckReport(const Report& report, absl::string_view which) {
  if (report.is_object() && report.contains("runs")) {
    return absl::FailedPreconditionError(
        absl::StrCat(which, " holds several loads; compare takes one of each"));
  }
  if (HasFigures(report)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(which, " is no report of attendant load --json"));
}

double Value(const Report& report, const std::string& name) {
  return (name == kThroughput ? report[name] : report["latency_s"][name]).get<double>();
}

// Empty when the report does not have the batches of a figure.
std::vector<double> Batches(const Report& report, const std::string& name) {
  std::vector<double> values;
  if (!report.contains("batches") || !report["batches"].is_object()) return values;
  const Report& batches = report["batches"];
  if (!batches.contains(name) || !batches[name].is_array()) return values;
  for (const Report& value : batches[name]) {
    if (!value.is_number()) return {};
    values.push_back(value.get<double>());
  }
  return values;
}

ComparedFigure Compare(const Report& a, const Report& b, const std::string& name) {
  ComparedFigure figure{.name = name, .a = Value(a, name), .b = Value(b, name), .difference = {}};
  const std::vector<double> left = Batches(a, name), right = Batches(b, name);
  std::optional<Estimate> difference = EstimateDifference(left, right);
  if (!difference.has_value()) return figure;
  const double mean =
      std::accumulate(left.begin(), left.end(), 0.0) / static_cast<double>(left.size());
  if (mean <= 0) return figure;
  difference->value /= mean;
  difference->half_width /= mean;
  figure.difference = difference;
  const bool is_clear = std::abs(difference->value) > difference->half_width;
  const bool is_better = (difference->value > 0) == (name == kThroughput);
  figure.change = !is_clear ? Change::kUnclear : is_better ? Change::kBetter : Change::kWorse;
  return figure;
}

}  // namespace

absl::StatusOr<std::vector<ComparedFigure>> CompareReports(const Report& a, const Report& b) {
  ATTENDANT_RETURN_IF_ERROR(CheckReport(a, "A"));
  ATTENDANT_RETURN_IF_ERROR(CheckReport(b, "B"));
  std::vector<ComparedFigure> figures = {Compare(a, b, kThroughput)};
  for (const char* name : kLatencies) figures.push_back(Compare(a, b, name));
  return figures;
}

}  // namespace attendant::client
