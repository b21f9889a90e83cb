// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/batching/batcher.h"
#include "server/metrics/server_metrics.h"
#include "server/models/encoder_model.h"

namespace attendant {

// Counts the batches and the queue of one model, for Prometheus and for KServe. Thread-safe.
class ModelObserver final : public BatchObserver {
 public:
  // Both must outlive the observer. `statistics` is null for a model that KServe does not serve.
  explicit ModelObserver(ModelMetrics& metrics, KServeStatistics* statistics = nullptr);

  void OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
               absl::Duration compute) override;
  void OnRejected(RejectReason reason) override;
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override;
  void OnStalled(int workers) override;

 private:
  ModelMetrics& metrics_;
  KServeStatistics* const statistics_;
};

}  // namespace attendant
