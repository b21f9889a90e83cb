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

}  // namespace

void Recorder::Sent(absl::Duration intended, absl::Duration sent) {
  absl::MutexLock lock(&mutex_);
  if (interrupted_ || !InWindow(intended)) return;
  counts_.max_send_lag = std::max(counts_.max_send_lag, sent - intended);
}

void Recorder::NotSent(absl::Duration intended) {
  absl::MutexLock lock(&mutex_);
  if (!interrupted_ && InWindow(intended)) ++counts_.not_sent;
}

void Recorder::Finished(absl::Duration intended, absl::Duration finished,
                        const CallResult& result) {
  absl::MutexLock lock(&mutex_);
  if (interrupted_) {
    counts_.cut_off += intended >= begin_ ? 1 : 0;
    return;
  }
  last_finish_ = std::max(last_finish_, finished);
  const bool ok = result.code == grpc::StatusCode::OK;
  if (ok && InWindow(finished)) {
    ++window_requests_;
    window_sequences_ += result.sequences;
    if (result.tokens.has_value()) window_tokens_ = window_tokens_.value_or(0) + *result.tokens;
  }
  if (!InWindow(intended)) return;
  const int64_t latency_ns = std::max<int64_t>(0, absl::ToInt64Nanoseconds(finished - intended));
  if (!ok) {
    ++counts_.failed;
    const std::string code = CodeName(result.code);
    LoadSummary::Error& error = counts_.errors[code];
    if (error.count++ == 0) error.first_message = result.message;
    error_latency_ns_[code].Record(latency_ns);
    return;
  }
  ++counts_.ok;
  latency_ns_.Record(latency_ns);
  if (result.timings.has_value()) AddServer(*result.timings);
}

void Recorder::AddServer(const Timings& timings) {
  Timings sums = server_sums_.value_or(Timings{});
  sums.tokenize_us += timings.tokenize_us;
  sums.queue_us += timings.queue_us;
  sums.compute_us += timings.compute_us;
  sums.total_us += timings.total_us;
  server_sums_ = sums;
}

void Recorder::Interrupt(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  interrupted_ = true;
  end_ = std::min(end_, now);
}

LoadSummary Recorder::Summarize(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  LoadSummary summary = counts_;
  const absl::Duration last = end_ == absl::InfiniteDuration() ? last_finish_ : end_;
  summary.window = std::max(std::min(last, now) - begin_, absl::ZeroDuration());
  summary.requests_per_s = PerSecond(window_requests_, summary.window);
  summary.sequences_per_s = PerSecond(window_sequences_, summary.window);
  if (window_tokens_.has_value()) {
    summary.tokens_per_s = PerSecond(*window_tokens_, summary.window);
  }
  const auto percentile = [&](double percent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return absl::Nanoseconds(latency_ns_.Percentile(percent));
  };
  summary.mean = absl::Nanoseconds(latency_ns_.mean());
  summary.p50 = percentile(50);
  summary.p90 = percentile(90);
  summary.p99 = percentile(99);
  summary.p999 = percentile(99.9);
  summary.max = absl::Nanoseconds(latency_ns_.max());
  for (auto& [code, error] : summary.errors) {
    const Histogram& latency = error_latency_ns_.at(code);
    error.p50 = absl::Nanoseconds(latency.Percentile(50));
    error.p99 = absl::Nanoseconds(latency.Percentile(99));
    error.max = absl::Nanoseconds(latency.max());
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

}  // namespace attendant::client
