// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/batching/batcher.h"
#include "server/models/encoder_model.h"

namespace attendant {

// Tells what one model's batcher does to Prometheus and to KServe's statistics. Thread-safe.
class ModelObserver : public BatchObserver {
 public:
  // Both must outlive the observer.
  ModelObserver(ModelMetrics& metrics, KServeStatistics& statistics);

  void OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
               absl::Duration compute) override;
  void OnRejected(RejectReason reason) override;
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override;

 private:
  ModelMetrics& metrics_;
  KServeStatistics& statistics_;
};

}  // namespace attendant
