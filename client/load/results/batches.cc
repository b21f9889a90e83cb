// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/batches.h"

#include <algorithm>
#include <cstdint>

namespace attendant::client {
namespace {

constexpr size_t kMinBatches = 10;
constexpr double kNsPerSecond = 1e9;

struct PercentileFigure {
  const char* name;
  double percent;
  int64_t min_requests;  // in a batch
};
constexpr PercentileFigure kPercentiles[] = {{"p50", 50, 5}, {"p90", 90, 20}, {"p99", 99, 200}};

struct Batch {
  Histogram response_ns;
  int64_t offered = 0, failed = 0, finished = 0;
};

// Batches of `length` intervals, of the first `whole` intervals.
std::vector<Batch> BatchesOf(const std::vector<Interval>& intervals, size_t whole, size_t length) {
  std::vector<Batch> batches(whole / length);
  for (size_t i = 0; i < batches.size() * length; ++i) {
    Batch& batch = batches[i / length];
    batch.response_ns.Add(intervals[i].response_ns);
    batch.offered += intervals[i].offered;
    batch.failed += intervals[i].failed;
    batch.finished += intervals[i].finished;
  }
  return batches;
}

}  // namespace

BatchFigures BatchFiguresOf(const IntervalSeries& series, absl::Duration window) {
  const std::vector<Interval>& intervals = series.intervals();
  absl::Duration rest;
  const auto in_window = static_cast<size_t>(absl::IDivDuration(window, series.length(), &rest));
  const size_t whole = std::min(intervals.size(), in_window);
  const size_t length = std::max<size_t>(1, whole / kMinBatches);
  const std::vector<Batch> batches = BatchesOf(intervals, whole, length);
  if (batches.empty()) return {};
  const double batch_s = absl::ToDoubleSeconds(series.length()) * static_cast<double>(length);
  BatchFigures figures;
  int64_t fewest = batches[0].response_ns.count(), fewest_offered = batches[0].offered;
  for (const Batch& batch : batches) {
    figures["requests_per_s"].push_back(static_cast<double>(batch.finished) / batch_s);
    figures["error_rate"].push_back(static_cast<double>(batch.failed) /
                                    static_cast<double>(batch.offered));
    figures["mean"].push_back(batch.response_ns.mean() / kNsPerSecond);
    for (const PercentileFigure& figure : kPercentiles) {
      figures[figure.name].push_back(
          static_cast<double>(batch.response_ns.Percentile(figure.percent)) / kNsPerSecond);
    }
    fewest = std::min(fewest, batch.response_ns.count());
    fewest_offered = std::min(fewest_offered, batch.offered);
  }
  if (fewest == 0) figures.erase("mean");
  if (fewest_offered == 0) figures.erase("error_rate");
  for (const PercentileFigure& figure : kPercentiles) {
    if (fewest < figure.min_requests) figures.erase(figure.name);
  }
  return figures;
}

}  // namespace attendant::client
