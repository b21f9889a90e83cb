// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/threads/executor.h"

namespace attendant {

// A few threads for work that must keep neither the batcher's workers nor gRPC's threads: one pool
// decodes requests, another builds and serializes answers. Tasks begin in order of posting. But
// large ones, which may take a second, leave one thread to the small ones that wait behind them,
// unless it is the only one. The limits on pending requests bound the number of tasks. Thread-safe.
class TaskPool {
 public:
  using Task = absl::AnyInvocable<void()>;
  enum class Size { kSmall, kLarge };

  // `name` is the name of the threads, at most 15 bytes.
  TaskPool(int threads, const char* name);
  // Runs the tasks that were posted, then ends.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  void Post(Task task, Size size = Size::kSmall);

  // Functions that post to this pool; it must outlive them.
  Executor executor() {
    return [this](Task task) { Post(std::move(task)); };
  }
  Executor large_executor() {
    return [this](Task task) { Post(std::move(task), Size::kLarge); };
  }

  // Waits until every posted task has run and is destroyed.
  void AwaitIdle();

 private:
  struct Waiting {
    Task task;
    uint64_t number = 0;  // in order of posting
  };

  void Work();
  // The queue of the task that may begin next; null: none may.
  std::deque<Waiting>* Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_large_;  // that run at one time
  absl::Mutex mutex_;
  std::deque<Waiting> small_ ABSL_GUARDED_BY(mutex_);
  std::deque<Waiting> large_ ABSL_GUARDED_BY(mutex_);
  uint64_t posted_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_large_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace attendant
