// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/live_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"
#include "client/cli/load/load_report.h"

namespace attendant::client {
namespace {

constexpr size_t kBarWidth = 30;
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(250);

double Progress(const LoadPlan& plan, const LoadMoment& moment) {
  double done = 0;
  if (plan.max_requests > 0) {
    const LoadSummary& summary = moment.summary;
    done = static_cast<double>(summary.ok + summary.failed + summary.not_sent) /
           static_cast<double>(plan.max_requests);
  }
  if (plan.end() != absl::InfiniteDuration()) {
    done = std::max(done, absl::FDivDuration(moment.now, plan.end()));
  }
  return std::clamp(done, 0.0, 1.0);
}

std::string ProgressLine(const LoadPlan& plan, const LoadMoment& moment) {
  const double done = Progress(plan, moment);
  const size_t filled = static_cast<size_t>(done * static_cast<double>(kBarWidth));
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  return absl::StrFormat("[%s] %3.0f %%  %s%s", bar, done * 100,
                         absl::FormatDuration(absl::Trunc(moment.now, absl::Seconds(1))),
                         moment.now < plan.warmup ? "  warming up" : "");
}

std::string LatencyLine(absl::string_view name, const Latency& latency) {
  return absl::StrFormat("%-10s p50 %-8s p90 %-8s p99 %-8s p99.9 %-8s max %s", name,
                         ShortDuration(latency.p50), ShortDuration(latency.p90),
                         ShortDuration(latency.p99), ShortDuration(latency.p999),
                         ShortDuration(latency.max));
}

}  // namespace

std::vector<std::string> FormatMoment(const LoadPlan& plan, const LoadMoment& moment) {
  const LoadSummary& summary = moment.summary;
  std::vector<std::string> lines = {
      ProgressLine(plan, moment),
      absl::StrFormat("%-10s %s requests/s, %s on average, %s in flight", "rate",
                      FormatRate(moment.requests_per_s), FormatRate(summary.requests_per_s),
                      Thousands(moment.outstanding)),
      LatencyLine("response", summary.response), LatencyLine("service", summary.service)};
  std::string errors;
  for (const auto& [code, error] : summary.errors) {
    absl::StrAppend(&errors, "  ", code, " ", Thousands(error.count));
  }
  if (summary.not_sent > 0) absl::StrAppend(&errors, "  not sent ", Thousands(summary.not_sent));
  if (!errors.empty()) lines.push_back(absl::StrFormat("%-9s%s", "errors", errors));
  return lines;
}

void LiveView::Update(absl::Duration now, const Recorder& recorder, int64_t outstanding) {
  if (!enabled_ || now < next_) return;
  next_ = now + kRedrawInterval;
  LoadMoment moment{.now = now, .summary = recorder.Summarize(now), .outstanding = outstanding};
  const double seconds = absl::ToDoubleSeconds(now - std::exchange(before_, now));
  const int64_t answered = moment.summary.ok - std::exchange(ok_before_, moment.summary.ok);
  if (seconds > 0) moment.requests_per_s = static_cast<double>(answered) / seconds;
  Clear();
  for (const std::string& line : FormatMoment(plan_, moment)) {
    io_.err << line << "\n";
    ++num_lines_;
  }
  io_.err << std::flush;
}

void LiveView::Clear() {
  if (num_lines_ == 0) return;
  io_.err << "\x1b[" << num_lines_ << "A\r\x1b[J" << std::flush;
  num_lines_ = 0;
}

}  // namespace attendant::client
