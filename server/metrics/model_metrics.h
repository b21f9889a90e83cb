// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/metrics/metric_labels.h"

namespace attendant {

// The facts of a loaded model for its metrics: number format, back end, instruction set, load time
// and memory.
struct ModelLoadInfo {
  std::string dtype;
  std::string backend;
  std::string isa;
  absl::Duration load_time;
  int64_t weight_bytes = 0;
  int64_t arena_bytes = 0;  // of all its sessions
};

// The work of a model since its metrics were made, and its queue. Charts take the difference of
// two samples.
struct ModelSample {
  struct Histogram {
    std::vector<uint64_t> counts;  // one for each bucket, the last beyond all bounds
    double sum = 0;
  };

  std::string model = {};
  double requests = 0, failed = 0;  // answered OK, and with any other code
  double rejected = 0;
  double tokens = 0, padding_tokens = 0;
  double inflight = 0, queue_tokens = 0, queue_requests = 0;
  std::array<Histogram, kPhases.size()> phases = {};  // of all methods; DurationBuckets
  Histogram batch_tokens = {};                        // TokenBuckets
  Histogram batch_requests = {};                      // RequestBuckets
};

// Counts the work of one model, all its versions together. Made by ServerMetrics, which must
// outlive it; its series go with it. Thread-safe.
//
// Every series exists from SetKind on, with three exceptions:
// - those of the methods whose series begin with a request appear with the first one by each;
// - the durations of a method's phases, except total, appear with its first answer;
// - a request of a method that the model does not have is counted in requests_total, in a series
//   that appears with it, and its durations are not recorded.
// A call on an existing series is a few atomic operations (a histogram's: a short lock). The number
// of series is bounded, whatever clients send.
class ModelMetrics {
 public:
  virtual ~ModelMetrics() = default;

  // The model has the methods of its kind. Before this call, any method may be the model's.
  virtual void SetKind(ModelKind kind) = 0;

  virtual void ObservePhase(Method method, Phase phase, absl::Duration duration) = 0;
  virtual void CountRequest(Method method, absl::StatusCode code) = 0;
  virtual void CountTokens(int64_t valid, int64_t padding) = 0;
  virtual void ObserveSequence(int64_t tokens) = 0;
  virtual void AddInflight(int delta) = 0;

  virtual void ObserveBatch(int64_t tokens, int64_t requests) = 0;
  // A RejectReasonName, or MemoryBudgets::kRejected.
  virtual void CountRejected(absl::string_view reason) = 0;
  virtual void AddQueue(int64_t tokens, int64_t requests) = 0;  // a change
  virtual void AddStalledWorkers(int workers) = 0;              // likewise
  virtual void AddLostWorkers(int workers) = 0;                 // likewise

  virtual void SetLoaded(const ModelLoadInfo& model) = 0;
  virtual void SetNotLoaded() = 0;          // until the next SetLoaded
  virtual void SetFailed(bool failed) = 0;  // whether the last load of one of its versions failed

  // The current values, without the model's name.
  virtual ModelSample Sample() const = 0;
};

}  // namespace attendant
