// SPDX-License-Identifier: Apache-2.0
#include "server/requests/call_state.h"

namespace attendant {

void CallState::Cancel() {
  Batcher* batcher = nullptr;
  RequestId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    batcher = batcher_;
    id = id_;
  }
  if (batcher != nullptr) batcher->Cancel(id);
}

bool CallState::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void CallState::SetSubmitted(Batcher& batcher, RequestId id) {
  {
    absl::MutexLock lock(&mutex_);
    batcher_ = &batcher;
    id_ = id;
    if (!cancelled_) return;
  }
  batcher.Cancel(id);  // Cancel came while the request was being submitted
}

void CallState::RetainRequest(ByteBudget::Share share) {
  absl::MutexLock lock(&mutex_);
  request_ = std::move(share);
}

void CallState::RetainResponse(ByteBudget::Share share) {
  const int64_t bytes = share.bytes();
  {
    absl::MutexLock lock(&mutex_);
    response_ = std::move(share);
  }
  if (on_admitted_) on_admitted_(bytes);
}

void CallState::ReleaseRequest() {
  absl::MutexLock lock(&mutex_);
  request_ = ByteBudget::Share();
}

}  // namespace attendant
