// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/requests/byte_budget.h"
#include "server/requests/ticket.h"

namespace attendant {

// What the calls of every protocol have in common.

// What the owner of a request and those who work on it share: whether the caller has given it up,
// and the memory it is accounted for. The owner keeps it until the answer is written; the memory
// goes back with it. Thread-safe.
class Cancellation {
 public:
  // `on_admitted` is told the bytes of the answer to come; called at most once, before the answer.
  explicit Cancellation(std::function<void(int64_t response_bytes)> on_admitted = nullptr)
      : on_admitted_(std::move(on_admitted)) {}

  // At any time: before the request was submitted, after, or when it has long been answered.
  void Cancel();
  bool cancelled() const;

  // The request that Cancel is for, once it has been submitted.
  void SetTicket(const Ticket& ticket);

  void HoldRequest(ByteBudget::Share share);
  void HoldResponse(ByteBudget::Share share);
  void ReleaseRequest();  // its memory has been freed

 private:
  const std::function<void(int64_t)> on_admitted_;
  mutable absl::Mutex mutex_;
  Ticket ticket_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  ByteBudget::Share request_ ABSL_GUARDED_BY(mutex_);
  ByteBudget::Share response_ ABSL_GUARDED_BY(mutex_);
};

// Calls `read`, which takes in a request of this size: at once when that is soon done, else on
// `executor`, so that a gRPC thread is not kept from its other calls.
void ReadRequest(size_t request_bytes, const Executor& executor, absl::AnyInvocable<void()> read);

// gRPC cancels a call whose deadline passes, at the client's end perhaps a little before it passes
// here: CANCELLED about the deadline or later is DEADLINE_EXCEEDED.
absl::Status DeadlineInsteadOfCancelled(const absl::Status& status, absl::Time deadline);

}  // namespace attendant
