// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// A few threads for what neither batching nor gRPC shall wait for: one pool builds and serializes
// answers, another reads large requests in. What is posted is bounded by what may be pending
// (EncodeLimits). Thread-safe.
class CompletionPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // `name` is the threads', at most 15 bytes.
  CompletionPool(int threads, const char* name);
  // Runs what was posted, then ends.
  ~CompletionPool();
  CompletionPool(const CompletionPool&) = delete;
  CompletionPool& operator=(const CompletionPool&) = delete;

  // Runs `task` on one of the threads; in order of posting where there is only one.
  void Post(Task task);

  // Until all that was posted has run and its tasks are gone.
  void AwaitIdle();

 private:
  void Work();

  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace attendant
