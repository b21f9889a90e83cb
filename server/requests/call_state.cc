// SPDX-License-Identifier: Apache-2.0
#include "server/requests/call_state.h"

#include <utility>

#include "absl/time/clock.h"

namespace attendant {

void Cancellation::Cancel() {
  Ticket ticket;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    ticket = ticket_;
  }
  ticket.Cancel();
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void Cancellation::SetTicket(const Ticket& ticket) {
  {
    absl::MutexLock lock(&mutex_);
    ticket_ = ticket;
    if (!cancelled_) return;
  }
  ticket.Cancel();
}

void Cancellation::HoldRequest(ByteBudget::Share share) {
  absl::MutexLock lock(&mutex_);
  request_ = std::move(share);
}

void Cancellation::HoldResponse(ByteBudget::Share share) {
  const int64_t bytes = share.bytes();
  {
    absl::MutexLock lock(&mutex_);
    response_ = std::move(share);
  }
  if (on_admitted_) on_admitted_(bytes);
}

void Cancellation::ReleaseRequest() {
  absl::MutexLock lock(&mutex_);
  request_ = ByteBudget::Share();
}

void ReadRequest(size_t request_bytes, const Executor& executor, absl::AnyInvocable<void()> read) {
  // Up to here, tokenizing takes less time than a gRPC thread may be kept from its other calls.
  constexpr size_t kInlineRequestBytes = size_t{32} << 10;
  if (request_bytes <= kInlineRequestBytes) return read();
  executor(std::move(read));
}

absl::Status DeadlineInsteadOfCancelled(const absl::Status& status, absl::Time deadline) {
  constexpr absl::Duration kClocksDiffer = absl::Milliseconds(10);
  if (!absl::IsCancelled(status) || absl::Now() + kClocksDiffer < deadline) return status;
  return absl::DeadlineExceededError("the deadline passed before the answer was ready");
}

}  // namespace attendant
