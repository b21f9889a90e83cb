// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_observer.h"

#include <utility>

namespace attendant {

ModelObserver::ModelObserver(ModelMetrics& metrics) : metrics_(metrics) {}

ModelObserver::~ModelObserver() {
  OnQueueChanged(0, 0);
  OnStalled(0);
  OnLost(0);
}

void ModelObserver::OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
                            absl::Duration compute) {
  metrics_.ObserveBatch(tokens, requests);
  absl::ReaderMutexLock lock(&listeners_mutex_);
  for (const auto& listener : listeners_) listener->OnBatch(sequences, compute);
}

void ModelObserver::OnRejected(RejectReason reason) {
  metrics_.CountRejected(RejectReasonName(reason));
}

void ModelObserver::OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) {
  metrics_.AddQueue(queued_tokens - std::exchange(queued_tokens_, queued_tokens),
                    queued_requests - std::exchange(queued_requests_, queued_requests));
}

void ModelObserver::OnStalled(int workers) {
  metrics_.AddStalledWorkers(workers - std::exchange(stalled_workers_, workers));
}

void ModelObserver::OnLost(int workers) {
  metrics_.AddLostWorkers(workers - std::exchange(lost_workers_, workers));
}

}  // namespace attendant
