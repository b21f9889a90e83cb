// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// A few threads for work that must keep neither the batcher's workers nor gRPC's threads: one pool
// decodes large requests, another builds and serializes answers. The limits on pending requests
// bound the number of tasks. Thread-safe.
class TaskPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // `name` is the name of the threads, at most 15 bytes.
  TaskPool(int threads, const char* name);
  // Runs the tasks that were posted, then ends.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // Runs `task` on one of the threads; with one thread, in order of posting.
  void Post(Task task);

  // A function that posts to this pool; the pool must outlive it.
  std::function<void(Task)> executor() {
    return [this](Task task) { Post(std::move(task)); };
  }

  // Waits until every posted task has run and is destroyed.
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
