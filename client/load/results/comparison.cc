// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Report = nlohmann::ordered_json;

constexpr const char* kThroughput = "requests_per_s";
constexpr const char* kErrorRate = "error_rate";
constexpr const char* kCounts[] = {"ok", "failed", "not_sent"};
struct Setting {
  const char* name;
  bool is_load;
};
constexpr Setting kSettings[] = {
    {"protocol", false}, {"model", false},   {"model_version", false}, {"payload", true},
    {"rate", true},      {"arrivals", true}, {"connections", true},    {"max_outstanding", true},
    {"warmup_s", false}};
constexpr const char* kLatencies[] = {"mean", "p50", "p90", "p99", "p99.9", "max"};

bool HasNumbers(const Report& report, const char* field, std::span<const char* const> names) {
  if (!report.contains(field) || !report[field].is_object()) return false;
  return std::all_of(names.begin(), names.end(), [&numbers = report[field]](const char* name) {
    return numbers.contains(name) && numbers[name].is_number();
  });
}

bool HasFigures(const Report& report) {
  return report.is_object() && report.contains(kThroughput) && report[kThroughput].is_number() &&
         HasNumbers(report, "requests", kCounts) && HasNumbers(report, "latency_s", kLatencies);
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

double ErrorRate(const Report& requests) {
  const double bad = requests["failed"].get<double>() + requests["not_sent"].get<double>();
  return bad > 0 ? bad / (requests["ok"].get<double>() + bad) : 0;
}

double Value(const Report& report, const std::string& name) {
  if (name == kErrorRate) return ErrorRate(report["requests"]);
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

// Older reports lack some settings.
bool Differ(const Report& a, const Report& b, const char* setting) {
  return a.contains(setting) && b.contains(setting) && a[setting] != b[setting];
}

std::string Shown(const Report& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

ComparedFigure Compare(const Report& a, const Report& b, const std::string& name) {
  ComparedFigure figure{.name = name, .a = Value(a, name), .b = Value(b, name), .difference = {}};
  const bool is_schedule = name == kThroughput && a.contains("loop") && a["loop"] == "open";
  if (is_schedule || name == "p99.9" || name == "max") {
    figure.change = Change::kNotJudged;
    return figure;
  }
  const std::vector<double> left = Batches(a, name), right = Batches(b, name);
  std::optional<Estimate> difference = EstimateDifference(left, right, Sure::kOfSix);
  if (!difference.has_value()) return figure;
  if (!figure.is_share()) {
    const double mean =
        std::accumulate(left.begin(), left.end(), 0.0) / static_cast<double>(left.size());
    if (mean <= 0) return figure;
    difference->value /= mean;
    difference->half_width /= mean;
  }
  figure.difference = difference;
  const bool is_clear = std::abs(difference->value) > difference->half_width;
  const bool is_better = (difference->value > 0) == (name == kThroughput);
  figure.change = !is_clear ? Change::kUnclear : is_better ? Change::kBetter : Change::kWorse;
  return figure;
}

}  // namespace

bool ComparedFigure::is_share() const { return name == kErrorRate; }

bool ComparedFigure::is_basic() const {
  return name == kThroughput || name == kErrorRate || name == "mean";
}

double ComparedFigure::PercentOfA() const {
  const double percent = 100 * std::abs(difference->value);
  if (!is_share()) return percent;
  return a > 0 ? percent / a : std::numeric_limits<double>::infinity();
}

absl::StatusOr<std::vector<ComparedFigure>> CompareReports(const Report& a, const Report& b) {
  ATTENDANT_RETURN_IF_ERROR(CheckReport(a, "A"));
  ATTENDANT_RETURN_IF_ERROR(CheckReport(b, "B"));
  if (Differ(a, b, "loop")) {
    return absl::FailedPreconditionError(
        absl::StrCat("A is of a loop that is ", Shown(a["loop"]), ", B of one that is ",
                     Shown(b["loop"]), ": their latencies are not of the same kind"));
  }
  std::vector<ComparedFigure> figures = {Compare(a, b, kThroughput), Compare(a, b, kErrorRate)};
  for (const char* name : kLatencies) figures.push_back(Compare(a, b, name));
  return figures;
}

std::vector<SettingDifference> CompareSettings(const Report& a, const Report& b) {
  std::vector<SettingDifference> differences;
  for (const Setting& setting : kSettings) {
    if (!Differ(a, b, setting.name)) continue;
    differences.push_back({.name = setting.name,
                           .a = Shown(a[setting.name]),
                           .b = Shown(b[setting.name]),
                           .is_load = setting.is_load});
  }
  return differences;
}

}  // namespace attendant::client
