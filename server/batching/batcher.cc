// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batcher.h"

#include <utility>

#include "server/batching/batcher_state.h"

namespace attendant {

absl::string_view RejectReasonName(RejectReason reason) {
  switch (reason) {
    case RejectReason::kQueueFull:
      return "queue_full";
    case RejectReason::kTooLarge:
      return "too_large";
    case RejectReason::kDeadline:
      return "deadline";
    case RejectReason::kCancelled:
      return "cancelled";
    case RejectReason::kDraining:
      return "draining";
    case RejectReason::kDeviceLost:
      return "device_lost";
  }
  return "unknown";
}

Batcher::Batcher(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
                 BatchObserver& observer, Executor executor)
    : state_(std::make_unique<State>(options, std::move(runners), observer, std::move(executor))) {}

Batcher::~Batcher() = default;

RequestId Batcher::Submit(PendingRequest request) { return state_->Submit(std::move(request)); }

void Batcher::Cancel(RequestId id) { state_->Cancel(id); }

void Batcher::Drain(absl::Time deadline) { state_->Drain(deadline); }

void Batcher::SetLostListener(LostListener listener) {
  state_->SetLostListener(std::move(listener));
}

}  // namespace attendant
