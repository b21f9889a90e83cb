// SPDX-License-Identifier: Apache-2.0
#include "server/requests/call_state.h"

#include "kernels/core/status_macros.h"

namespace attendant {

absl::Status CancelledByClient() { return absl::CancelledError("cancelled by the client"); }

void CallState::Cancel() {
  OnCancel on_cancel;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    on_cancel = std::exchange(on_cancel_, nullptr);
  }
  if (on_cancel != nullptr) on_cancel();
}

bool CallState::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void CallState::SetOnCancel(OnCancel on_cancel) {
  {
    absl::MutexLock lock(&mutex_);
    if (!cancelled_) {
      on_cancel_ = std::move(on_cancel);
      return;
    }
  }
  on_cancel();
}

void CallState::SetWaiting(ModelWaits& waits, ModelWaits::Id id) {
  SetOnCancel([&waits, id] { waits.End(id, CancelledByClient()); });
}

void CallState::SetSubmitted(std::weak_ptr<Batcher> weak, RequestId id) {
  SetOnCancel([weak = std::move(weak), id] {
    if (const std::shared_ptr<Batcher> batcher = weak.lock()) batcher->Cancel(id);
  });
}

void CallState::SetClientId(std::string id) {
  absl::MutexLock lock(&mutex_);
  client_id_ = std::move(id);
}

std::string CallState::client_id() const {
  absl::MutexLock lock(&mutex_);
  return client_id_;
}

int64_t CallState::request_bytes() const {
  absl::MutexLock lock(&mutex_);
  return request_.bytes();
}

absl::Status CallState::AcquireRequest(int64_t bytes) {
  ATTENDANT_ASSIGN_OR_RETURN(ByteBudget::Share share,
                             memory_->AcquireRequest(bytes, request_bytes()));
  HoldRequest(std::move(share));
  return absl::OkStatus();
}

absl::Status CallState::AcquireRequestUpTo(int64_t bytes) {
  const int64_t missing = bytes - request_bytes();
  return missing > 0 ? AcquireRequest(missing) : absl::OkStatus();
}

void CallState::HoldRequest(ByteBudget::Share share) {
  absl::MutexLock lock(&mutex_);
  request_.Add(std::move(share));
}

absl::Status CallState::AcquireResponse(int64_t bytes) {
  const int64_t held = response_bytes();
  ATTENDANT_ASSIGN_OR_RETURN(ByteBudget::Share share, memory_->AcquireResponse(bytes - held, held));
  {
    absl::MutexLock lock(&mutex_);
    response_.Add(std::move(share));
  }
  if (on_admitted_) on_admitted_(bytes);
  return absl::OkStatus();
}

int64_t CallState::response_bytes() const {
  absl::MutexLock lock(&mutex_);
  return response_.bytes();
}

absl::Status CallState::AcquireAnswered(int64_t bytes) {
  const int64_t missing = bytes - response_bytes();
  if (missing <= 0) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(ByteBudget::Share share,
                             memory_->AcquireResponse(missing, 0, ByteBudget::Use::kError));
  absl::MutexLock lock(&mutex_);
  response_.Add(std::move(share));
  return absl::OkStatus();
}

bool CallState::holds_memory() const {
  absl::MutexLock lock(&mutex_);
  return request_.bytes() + response_.bytes() > 0;
}

void CallState::ReleaseRequest() {
  absl::MutexLock lock(&mutex_);
  request_ = ByteBudget::Share();
}

}  // namespace attendant
