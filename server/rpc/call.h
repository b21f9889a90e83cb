// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/rpc/encode_pipeline.h"

namespace attendant {

// What the calls of every protocol have in common.

// Lets a caller give up a request at any time: before it was submitted, after, or when it has long
// been answered. Thread-safe.
class Cancellation {
 public:
  explicit Cancellation(EncodePipeline& pipeline) : pipeline_(pipeline) {}

  void Cancel();
  bool cancelled() const;

  // The request that Cancel is for, once it has been submitted.
  void SetTicket(const EncodePipeline::Ticket& ticket);

 private:
  EncodePipeline& pipeline_;
  mutable absl::Mutex mutex_;
  EncodePipeline::Ticket ticket_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// Calls `read`, which takes in a request of this size: at once when that is soon done, else on
// `executor`, so that a gRPC thread is not kept from its other calls.
void ReadRequest(size_t request_bytes, const Executor& executor, absl::AnyInvocable<void()> read);

// gRPC cancels a call whose deadline passes, at the client's end perhaps a little before it passes
// here: CANCELLED about the deadline or later is DEADLINE_EXCEEDED.
absl::Status DeadlineInsteadOfCancelled(const absl::Status& status, absl::Time deadline);

}  // namespace attendant
