// SPDX-License-Identifier: Apache-2.0
#include "client/load/recorder.h"

#include <algorithm>

#include "absl/status/status.h"

namespace attendant::client {
namespace {

std::string CodeName(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

double PerSecond(int64_t count, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

int64_t Nanoseconds(absl::Duration time) {
  return std::max<int64_t>(0, absl::ToInt64Nanoseconds(time));
}

Latency LatencyOf(const Histogram& histogram) {
  const auto percentile = [&](double percent) {
    return absl::Nanoseconds(histogram.Percentile(percent));
  };
  return {.mean = absl::Nanoseconds(histogram.mean()),
          .p50 = percentile(50),
          .p90 = percentile(90),
          .p99 = percentile(99),
          .p999 = percentile(99.9),
          .max = absl::Nanoseconds(histogram.max())};
}

}  // namespace

void Recorder::Sent(absl::Duration intended, absl::Duration sent) {
  absl::MutexLock lock(&mutex_);
  if (interrupted_ || !InWindow(intended)) return;
  send_lag_ns_.Record(Nanoseconds(sent - intended));
}

void Recorder::NotSent(absl::Duration intended) {
  absl::MutexLock lock(&mutex_);
  if (interrupted_ || !InWindow(intended)) return;
  ++counts_.not_sent;
  Interval& interval = detail_.series.At(intended - begin_);
  ++interval.offered;
  ++interval.failed;
}

void Recorder::Finished(const CallTimes& times, const CallResult& result) {
  bool counted = false;
  {
    absl::MutexLock lock(&mutex_);
    counted = CountFinished(times, result);
  }
  if (counted && observer_ != nullptr) observer_(times, result);
}

bool Recorder::CountFinished(const CallTimes& times, const CallResult& result) {
  if (interrupted_) {
    counts_.cut_off += times.intended >= begin_ ? 1 : 0;
    return false;
  }
  last_finish_ = std::max(last_finish_, times.finished);
  const bool ok = result.code == grpc::StatusCode::OK;
  if (ok && InWindow(times.finished)) CountThroughput(times, result);
  if (!InWindow(times.intended)) return true;
  counts_.resent += result.resent;
  const int64_t response_ns = Nanoseconds(times.finished - times.intended);
  Interval& interval = detail_.series.At(times.intended - begin_);
  ++interval.offered;
  if (!ok) {
    ++interval.failed;
    CountError(response_ns, result);
    return true;
  }
  ++counts_.ok;
  interval.response_ns.Record(response_ns);
  detail_.response_ns.Record(response_ns);
  detail_.service_ns.Record(Nanoseconds(times.finished - times.sent));
  if (result.timings.has_value()) AddServer(*result.timings);
  return true;
}

void Recorder::CountThroughput(const CallTimes& times, const CallResult& result) {
  ++window_requests_;
  window_sequences_ += result.sequences;
  if (result.tokens.has_value()) window_tokens_ = window_tokens_.value_or(0) + *result.tokens;
  ++detail_.series.At(times.finished - begin_).finished;
}

void Recorder::CountError(int64_t response_ns, const CallResult& result) {
  ++counts_.failed;
  const std::string code = CodeName(result.code);
  LoadSummary::Error& error = counts_.errors[code];
  if (error.count++ == 0) error.first_message = result.message;
  error_response_ns_[code].Record(response_ns);
}

void Recorder::AddServer(const Timings& timings) {
  Timings sums = server_sums_.value_or(Timings{});
  sums.tokenize_us += timings.tokenize_us;
  sums.queue_us += timings.queue_us;
  sums.compute_us += timings.compute_us;
  sums.total_us += timings.total_us;
  server_sums_ = sums;
}

void Recorder::EndWindow(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  end_ = std::min(end_, now);
}

void Recorder::Interrupt(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  interrupted_ = true;
  end_ = std::min(end_, now);
}

LoadSummary Recorder::Summarize(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  LoadSummary summary = counts_;
  summary.interrupted = interrupted_;
  const absl::Duration last = now < end_ ? last_finish_ : end_;
  summary.window = std::max(std::min(last, now) - begin_, absl::ZeroDuration());
  summary.requests_per_s = PerSecond(window_requests_, summary.window);
  summary.sequences_per_s = PerSecond(window_sequences_, summary.window);
  if (window_tokens_.has_value()) {
    summary.tokens_per_s = PerSecond(*window_tokens_, summary.window);
  }
  summary.response = LatencyOf(detail_.response_ns);
  summary.service = LatencyOf(detail_.service_ns);
  summary.send_lag = LatencyOf(send_lag_ns_);
  for (auto& [code, error] : summary.errors) {
    const Latency latency = LatencyOf(error_response_ns_.at(code));
    error.p50 = latency.p50;
    error.p99 = latency.p99;
    error.max = latency.max;
  }
  if (server_sums_.has_value()) {
    const double count = static_cast<double>(counts_.ok);
    summary.server = {.tokenize = absl::Microseconds(server_sums_->tokenize_us) / count,
                      .queue = absl::Microseconds(server_sums_->queue_us) / count,
                      .compute = absl::Microseconds(server_sums_->compute_us) / count,
                      .total = absl::Microseconds(server_sums_->total_us) / count};
  }
  return summary;
}

LoadDetail Recorder::Detail() const {
  absl::MutexLock lock(&mutex_);
  return detail_;
}

void Recorder::CopySeries(IntervalSeries& copy) const {
  for (size_t index = 0;; ++index) {
    absl::MutexLock lock(&mutex_);
    const IntervalSeries& series = detail_.series;
    if (copy.length() != series.length()) {  // neighbours have become one
      copy = IntervalSeries(series.length());
      index = 0;
    }
    if (index >= series.intervals().size()) return;
    copy.At(static_cast<int64_t>(index) * series.length()) = series.intervals()[index];
  }
}

}  // namespace attendant::client
