// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

// The calls of one kind that gRPC has not let go of, so that they can be closed, and their last
// answers written, before the server stops. Thread-safe.
template <typename Call>
class OpenCalls {
 public:
  void Add(Call* call) {
    absl::MutexLock lock(&mutex_);
    if (closing_) {
      call->Close();
    } else {
      calls_.insert(call);
    }
  }
  void Remove(Call* call) {
    absl::MutexLock lock(&mutex_);
    calls_.erase(call);
  }
  // Closes every call, and new ones at once.
  void CloseAll() {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    for (Call* call : calls_) call->Close();
  }
  // Until the calls that CloseAll found are gone, or `deadline`.
  void AwaitClosed(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
    mutex_.AwaitWithDeadline(absl::Condition(&none), deadline);
  }

 private:
  absl::Mutex mutex_;  // taken before a call's own
  absl::flat_hash_set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

// Closes both kinds of a service's calls, then waits for both, until `deadline` at the most.
template <typename Call, typename Stream>
void CloseAndAwait(OpenCalls<Call>& calls, OpenCalls<Stream>& streams, absl::Time deadline) {
  calls.CloseAll();
  streams.CloseAll();
  calls.AwaitClosed(deadline);
  streams.AwaitClosed(deadline);
}

}  // namespace attendant
