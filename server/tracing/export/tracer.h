// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/threads/steady_time.h"
#include "server/tracing/export/span_transport.h"
#include "server/tracing/id_source.h"
#include "server/tracing/request_trace.h"
#include "server/tracing/sampler.h"
#include "server/tracing/span.h"

namespace attendant {

// Sends the spans of requests to a collector, in batches, on a thread of its own. A request leaves
// its trace and goes on: it waits for nothing, and what the queue cannot hold is dropped. A batch
// that the collector does not take now is sent again later; meanwhile the queue fills.
// attendant_spans_total counts what became of each span, attendant_span_exports_total the requests
// to the collector. Thread-safe.
class Tracer {
 public:
  struct Options {
    Sampler sampler = {};
    std::vector<SpanAttribute> resource = {};
    std::string version = {};
    size_t max_queued_spans = 8192;           // at most some 16 MiB
    size_t max_batch_spans = 512;             // a batch goes when it has so many,
    absl::Duration delay = absl::Seconds(5);  // or when its first request has waited so long
    absl::Duration timeout = absl::Seconds(10);
    absl::Duration retry_delay = absl::Seconds(1);  // the first one, see RetryDelay
    // Called from the tracer's thread when exports begin to fail, with the reason, and with OK when
    // they succeed again.
    std::function<void(const absl::Status&)> on_change = nullptr;
  };

  // `metrics` must outlive the tracer.
  Tracer(Options options, std::unique_ptr<SpanTransport> transport, ServerMetrics& metrics);
  // Drops what waits, and cancels what is being sent.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // True if the spans of a trace are to be sent, see Sampler.
  bool Samples(std::optional<bool> caller, uint64_t trace_low) const {
    return options_.sampler.Samples(caller, trace_low);
  }

  // Never waits for the collector.
  void Add(RequestTrace request);

  // Sends what waits, at most for `limit`. A batch that fails is sent again only if there is time.
  // False: some spans were not sent, or not in time.
  bool Flush(absl::Duration limit);

 private:
  // The meaning of a collector's answer for a batch.
  struct Outcome {
    absl::Status status;
    bool again = false;  // it may be sent again
    absl::Duration retry_after = {};
    int64_t rejected = 0;  // spans of a batch that was taken
  };

  void Loop();
  // Empty: the tracer stops.
  std::vector<RequestTrace> AwaitBatch();
  bool BatchIsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<RequestTrace> TakeBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(const std::vector<RequestTrace>& batch);
  Outcome Post(const std::string& json);
  absl::Duration Timeout();
  bool Flushing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: the batch is given up.
  bool AwaitRetry(absl::Duration delay);
  void CountBatch(int64_t spans, const Outcome& outcome);
  void Tell(const absl::Status& status);

  const Options options_;
  const std::unique_ptr<SpanTransport> transport_;
  ServerMetrics& metrics_;
  IdSource dice_;
  bool failing_ = false;  // the thread's

  absl::Mutex mutex_;
  SteadyCondVar wake_;  // for the thread
  SteadyCondVar idle_;  // the thread has nothing to send
  std::deque<RequestTrace> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_spans_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time due_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // while the queue is not empty
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;  // a batch was given up since a flush began
  absl::Time flush_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

// A request or a stream whose trace is added when it is destroyed, with its time until then.
class OpenSpan {
 public:
  // `tracer` must outlive the span.
  OpenSpan(Tracer& tracer, RequestTrace trace) : tracer_(tracer), trace_(std::move(trace)) {}
  ~OpenSpan() {
    trace_.total = SteadyNow() - trace_.arrival;
    tracer_.Add(std::move(trace_));
  }
  OpenSpan(const OpenSpan&) = delete;
  OpenSpan& operator=(const OpenSpan&) = delete;

 private:
  Tracer& tracer_;
  RequestTrace trace_;
};

}  // namespace attendant
