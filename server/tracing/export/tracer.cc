// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/export/tracer.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "kernels/core/base/quote.h"
#include "server/tracing/export/retry.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/request_spans.h"

namespace attendant {

Tracer::Tracer(Options options, std::unique_ptr<SpanTransport> transport, ServerMetrics& metrics)
    : options_(std::move(options)),
      transport_(std::move(transport)),
      metrics_(metrics),
      dice_(std::random_device()()),
      thread_([this] { Loop(); }) {
  pthread_setname_np(thread_.native_handle(), "trace-export");
}

Tracer::~Tracer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  transport_->Cancel();
  thread_.join();
}

void Tracer::Add(RequestTrace request) {
  const size_t spans = NumSpans(request);
  {
    absl::MutexLock lock(&mutex_);
    if (queued_spans_ + spans <= options_.max_queued_spans) {
      if (queue_.empty()) due_ = SteadyNow() + options_.delay;
      // The thread wakes for the first request, to wait for others, and for a full batch.
      const bool first = queue_.empty();
      const bool fills = queued_spans_ < options_.max_batch_spans &&
                         queued_spans_ + spans >= options_.max_batch_spans;
      queued_spans_ += spans;
      queue_.push_back(std::move(request));
      if (first || fills) wake_.SignalAll();
      return;
    }
  }
  metrics_.CountSpans(SpanEnd::kDropped, static_cast<int64_t>(spans));
}

bool Tracer::Flush(absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  const absl::Time end = SteadyNow() + limit;
  flush_until_ = end;
  lost_ = false;
  wake_.SignalAll();
  while ((sending_ || !queue_.empty()) && SteadyNow() < end) idle_.WaitUntil(mutex_, end);
  flush_until_ = absl::InfinitePast();
  return !lost_ && !sending_ && queue_.empty();
}

void Tracer::Loop() {
  while (true) {
    const std::vector<RequestTrace> batch = AwaitBatch();
    if (batch.empty()) return;
    Send(batch);
  }
}

std::vector<RequestTrace> Tracer::AwaitBatch() {
  absl::MutexLock lock(&mutex_);
  sending_ = false;
  idle_.SignalAll();
  while (!stopping_) {
    if (BatchIsDue()) return TakeBatch();
    wake_.WaitUntil(mutex_, queue_.empty() ? absl::InfiniteFuture() : due_);
  }
  return {};
}

bool Tracer::BatchIsDue() const {
  if (queue_.empty()) return false;
  return queued_spans_ >= options_.max_batch_spans || SteadyNow() >= due_ || Flushing();
}

// The traces left in the queue keep its time, so that none waits for longer than the delay.
std::vector<RequestTrace> Tracer::TakeBatch() {
  std::vector<RequestTrace> batch;
  size_t spans = 0;
  while (!queue_.empty() && spans < options_.max_batch_spans) {
    spans += NumSpans(queue_.front());
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  queued_spans_ -= spans;
  sending_ = true;
  return batch;
}

void Tracer::Send(const std::vector<RequestTrace>& batch) {
  std::vector<OtlpSpan> spans;
  for (const RequestTrace& request : batch) {
    std::vector<OtlpSpan> made = MakeSpans(request);
    std::move(made.begin(), made.end(), std::back_inserter(spans));
  }
  const std::string json = ToOtlpJson(options_.resource, options_.version, spans);
  for (int attempt = 1;; ++attempt) {
    const Outcome outcome = Post(json);
    metrics_.CountSpanExport(outcome.status.ok());
    Tell(outcome.status);
    const double dice = std::ldexp(static_cast<double>(dice_.Next()), -64);
    const bool again =
        outcome.again && attempt < kMaxExportAttempts &&
        AwaitRetry(RetryDelay(attempt - 1, options_.retry_delay, dice, outcome.retry_after));
    if (!again) return CountBatch(static_cast<int64_t>(spans.size()), outcome);
  }
}

Tracer::Outcome Tracer::Post(const std::string& json) {
  const absl::StatusOr<SpanTransport::Answer> answer = transport_->Post(json, Timeout());
  if (!answer.ok()) return {.status = answer.status(), .again = true};
  if (answer->code >= 200 && answer->code < 300) {
    const OtlpAnswer read = ReadOtlpAnswer(answer->body);
    Outcome outcome{.status = absl::OkStatus(), .rejected = read.rejected_spans};
    if (read.rejected_spans > 0) {
      outcome.status = absl::InvalidArgumentError(absl::StrCat(
          "the collector rejected ", read.rejected_spans, " spans: ", Quote(read.message)));
    }
    return outcome;
  }
  return {.status = absl::UnavailableError(
              absl::StrCat("the collector answered ", answer->code, " ", Quote(answer->body))),
          .again = IsRetryableCode(answer->code),
          .retry_after = ParseRetryAfter(answer->retry_after, absl::Now())};
}

// The end of a flush cuts it.
absl::Duration Tracer::Timeout() {
  absl::MutexLock lock(&mutex_);
  const absl::Duration left = flush_until_ - SteadyNow();
  return left > absl::ZeroDuration() ? std::min(options_.timeout, left) : options_.timeout;
}

bool Tracer::Flushing() const { return SteadyNow() < flush_until_; }

// A flush that begins meanwhile is worth another attempt at once.
bool Tracer::AwaitRetry(absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  const absl::Time end = SteadyNow() + delay;
  const bool flushing = Flushing();
  if (flushing && end >= flush_until_) return false;
  while (!stopping_ && SteadyNow() < end) {
    if (!flushing && Flushing()) return true;
    wake_.WaitUntil(mutex_, end);
  }
  return !stopping_;
}

void Tracer::CountBatch(int64_t spans, const Outcome& outcome) {
  const bool taken = outcome.status.ok() || outcome.rejected > 0;
  const int64_t failed = taken ? std::min(outcome.rejected, spans) : spans;
  metrics_.CountSpans(SpanEnd::kExported, spans - failed);
  metrics_.CountSpans(SpanEnd::kFailed, failed);
  absl::MutexLock lock(&mutex_);
  lost_ |= failed > 0;
}

void Tracer::Tell(const absl::Status& status) {
  const bool changed = failing_ == status.ok();
  failing_ = !status.ok();
  if (changed && options_.on_change) options_.on_change(status);
}

}  // namespace attendant
