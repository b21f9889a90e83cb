// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/confidence_watch.h"

#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <optional>

#include "client/load/results/batches.h"
#include "client/load/results/statistics.h"

namespace attendant::client {
namespace {

constexpr std::chrono::seconds kInterval(1);
constexpr size_t kBatchesForConfidence = 10;

bool IsConfident(const IntervalSeries& series, absl::Duration window, double percent) {
  const BatchFigures figures = BatchFiguresOf(series, window);
  for (const char* name : {"p99", "mean"}) {
    const auto found = figures.find(name);
    if (found == figures.end() || found->second.size() < kBatchesForConfidence) continue;
    const std::optional<Estimate> estimate = EstimateMean(found->second);
    return estimate.has_value() && estimate->half_width <= percent / 100 * estimate->value;
  }
  return false;
}

}  // namespace

ConfidenceWatch::ConfidenceWatch(const Recorder& recorder, const LoadClock& clock,
                                 absl::Duration warmup, double percent)
    : recorder_(recorder), clock_(clock), warmup_(warmup), percent_(percent) {
  if (percent_ > 0) thread_ = std::thread([this] { Run(); });
}

ConfidenceWatch::~ConfidenceWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ConfidenceWatch::Run() {
  pthread_setname_np(pthread_self(), "confidence");
  IntervalSeries series;  // kept, and with it the memory of its histograms
  while (!IsStopped()) {
    const absl::Duration window = clock_.Now() - warmup_;
    if (window < absl::FromChrono(kInterval)) continue;
    recorder_.CopySeries(series);
    if (IsConfident(series, window, percent_)) return reached_.Notify();
  }
}

bool ConfidenceWatch::IsStopped() {
  std::unique_lock lock(mutex_);
  return stopping_.wait_for(lock, kInterval, [this] { return stop_; });
}

}  // namespace attendant::client
