// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace attendant {

// A fixed team of threads for one session: the caller and `threads - 1` workers that sleep between jobs.
// Every thread flushes denormals to zero while it works here. Thread-confined: one caller at a time.
class ThreadPool {
 public:
  // `on_thread_start` runs once on every worker, before any task.
  explicit ThreadPool(int threads, std::function<void()> on_thread_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls `task(index, thread)` for every index in [0, tasks), each once, lower indexes handed out
  // first; `thread` in [0, threads()) says whose scratch to use. Returns when all are done, with
  // everything they wrote visible. Tasks must not throw. Never allocates.
  void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t index, int thread)> task);

 private:
  struct Job;

  void WorkerLoop(int thread);
  void TakeTasks(Job& job, int thread);

  std::atomic<Job*> job_{nullptr};
  std::atomic<uint32_t> generation_{0};  // counts jobs; workers sleep until it changes
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace attendant
