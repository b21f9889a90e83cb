// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/metrics/model_metrics.h"

namespace attendant {

// Hears of every batch of a model. Thread-safe, and quick: OnBatch runs under the batcher's lock.
// It must call neither the batcher nor ListenerOf.
class BatchListener {
 public:
  virtual ~BatchListener() = default;
  virtual void OnBatch(int64_t sequences, absl::Duration compute) = 0;
};

// Counts the batches and the queue of one model in its metrics, and tells its listeners of the
// batches. Several instances of a model, as versions and while one replaces another, add up in its
// metrics. Thread-safe.
class ModelObserver final : public BatchObserver {
 public:
  explicit ModelObserver(ModelMetrics& metrics);  // must outlive the observer
  ~ModelObserver() override;                      // takes its part out of the gauges

  void OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
               absl::Duration compute) override;
  void OnRejected(RejectReason reason) override;
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override;
  void OnStalled(int workers) override;
  void OnLost(int workers) override;

  // The model's one listener of this type, which the first call makes. It lives as long as the
  // observer.
  template <typename Listener>
  Listener& ListenerOf() {
    {
      absl::ReaderMutexLock lock(&listeners_mutex_);
      if (Listener* const found = FindListener<Listener>()) return *found;
    }
    absl::MutexLock lock(&listeners_mutex_);
    if (Listener* const found = FindListener<Listener>()) return *found;  // made since then
    auto made = std::make_unique<Listener>();
    Listener& listener = *made;
    listeners_.push_back(std::move(made));
    return listener;
  }

 private:
  template <typename Listener>
  Listener* FindListener() const ABSL_SHARED_LOCKS_REQUIRED(listeners_mutex_) {
    for (const auto& listener : listeners_) {
      if (auto* const found = dynamic_cast<Listener*>(listener.get())) return found;
    }
    return nullptr;
  }

  ModelMetrics& metrics_;
  // Its part of the gauges. The batcher's lock guards them.
  int64_t queued_tokens_ = 0;
  int64_t queued_requests_ = 0;
  int stalled_workers_ = 0;
  int lost_workers_ = 0;

  absl::Mutex listeners_mutex_;
  std::vector<std::unique_ptr<BatchListener>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
};

}  // namespace attendant
