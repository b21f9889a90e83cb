// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_observer.h"

namespace attendant {

ModelObserver::ModelObserver(ModelMetrics& metrics, KServeStatistics* statistics)
    : metrics_(metrics), statistics_(statistics) {}

void ModelObserver::OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
                            absl::Duration compute) {
  metrics_.ObserveBatch(tokens, requests);
  if (statistics_ != nullptr) statistics_->RecordBatch(sequences, compute);
}

void ModelObserver::OnRejected(RejectReason reason) {
  metrics_.CountRejected(RejectReasonName(reason));
}

void ModelObserver::OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) {
  metrics_.SetQueue(queued_tokens, queued_requests);
}

void ModelObserver::OnStalled(int workers) { metrics_.SetStalledWorkers(workers); }

}  // namespace attendant
