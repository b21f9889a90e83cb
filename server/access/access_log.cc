// SPDX-License-Identifier: Apache-2.0
#include "server/access/access_log.h"

#include <pthread.h>

#include <chrono>
#include <cmath>
#include <random>
#include <utility>

#include "absl/time/clock.h"

namespace attendant {
namespace {

int64_t SteadySecond() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

AccessLog::AccessLog(LogFile file, const Options& options, ServerMetrics& metrics)
    : options_(options),
      metrics_(metrics),
      dice_(std::random_device()()),
      file_(std::move(file)),
      thread_([this] { Loop(); }) {
  pthread_setname_np(thread_.native_handle(), "access-log");
}

AccessLog::~AccessLog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  ending_ = true;
  thread_.join();
}

bool AccessLog::Wants(absl::StatusCode code) {
  if (code != absl::StatusCode::kOk || options_.sample >= 1) return true;
  return std::ldexp(static_cast<double>(dice_.Next()), -64) < options_.sample;
}

void AccessLog::Add(AccessRecord record) {
  LogLine result = LogLine::kWritten;
  {
    absl::MutexLock lock(&mutex_);
    if (!WithinRate()) {
      result = LogLine::kLimited;
    } else if (queue_.size() >= options_.max_queued) {
      result = LogLine::kDropped;
    } else {
      queue_.push_back(std::move(record));
      return;
    }
  }
  metrics_.CountAccessLogLine(result);
}

bool AccessLog::WithinRate() {
  const int64_t second = SteadySecond();
  if (std::exchange(second_, second) != second) lines_ = 0;
  return ++lines_ <= options_.max_lines_per_s;
}

void AccessLog::Flush(absl::Duration limit) {
  const absl::Time deadline = SteadyNow() + limit;
  absl::MutexLock lock(&mutex_);
  while ((writing_ || !queue_.empty()) && SteadyNow() < deadline) {
    written_.WaitUntil(mutex_, deadline);
  }
}

void AccessLog::Loop() {
  const auto may_go_on = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  };
  while (true) {
    std::deque<AccessRecord> records;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (queue_.empty()) written_.SignalAll();
      mutex_.Await(absl::Condition(&may_go_on));
      if (queue_.empty()) return;
      records.swap(queue_);
      writing_ = true;
    }
    Write(records);
  }
}

// A rotated file gets no line later than a second after its successor could be made.
void AccessLog::Write(std::deque<AccessRecord>& records) {
  constexpr absl::Duration kRenewInterval = absl::Seconds(1);
  for (const AccessRecord& record : records) {
    const absl::Time now = absl::Now();
    if (now - renewed_ >= kRenewInterval || now < renewed_) {
      file_.Renew();
      renewed_ = now;
    }
    const bool written = file_.Append(ToJsonLine(record), ending_);
    metrics_.CountAccessLogLine(written ? LogLine::kWritten : LogLine::kFailed);
    if (!written) TellOfFailure();
  }
}

void AccessLog::TellOfFailure() {
  const absl::Time now = SteadyNow();
  if (now - told_ < absl::Minutes(1)) return;
  told_ = now;
  options_.on_failure();
}

}  // namespace attendant
