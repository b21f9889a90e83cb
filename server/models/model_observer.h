// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/batching/batcher.h"
#include "server/metrics/server_metrics.h"
#include "server/models/encoder_model.h"

namespace attendant {

// Counts the batches and the queue of one model, for Prometheus and for KServe. Several instances
// of a model, as versions and while one replaces another, add up in its metrics. Thread-safe.
class ModelObserver final : public BatchObserver {
 public:
  // Both must outlive the observer. `statistics` is null for a model that KServe does not serve.
  explicit ModelObserver(ModelMetrics& metrics, KServeStatistics* statistics = nullptr);
  ~ModelObserver() override;  // takes its part out of the gauges

  void OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
               absl::Duration compute) override;
  void OnRejected(RejectReason reason) override;
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override;
  void OnStalled(int workers) override;
  void OnLost(int workers) override;

 private:
  ModelMetrics& metrics_;
  KServeStatistics* const statistics_;
  // Its part of the gauges. The batcher's lock guards them.
  int64_t queued_tokens_ = 0;
  int64_t queued_requests_ = 0;
  int stalled_workers_ = 0;
  int lost_workers_ = 0;
};

}  // namespace attendant
