// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// A few threads that finish requests: they build and serialize answers, and tokenize large
// requests, so that neither batching nor gRPC waits for that. What is posted is bounded by what is
// admitted. Thread-safe.
class CompletionPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  explicit CompletionPool(int threads);
  // Runs what was posted, then ends.
  ~CompletionPool();
  CompletionPool(const CompletionPool&) = delete;
  CompletionPool& operator=(const CompletionPool&) = delete;

  // Runs `task` on one of the threads; in order of posting where there is only one.
  void Post(Task task);

 private:
  void Work();

  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace attendant
