// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/thread_pool.h"

#include <pthread.h>

#include <utility>

namespace attendant {
namespace {

// About 20 us: longer than the pause between two phases of a layer, short beside a context switch's
// cost to whoever else wants the processor.
constexpr int kSpins = 1000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(ThreadTeam team, std::function<void()> on_thread_start)
    : team_(std::move(team)) {
  idle_workers_ = team_.threads - 1;
  workers_.reserve(static_cast<size_t>(team_.threads - 1));
  for (int thread = 1; thread < team_.threads; ++thread) {
    workers_.emplace_back([this, thread, on_thread_start] {
      pthread_setname_np(pthread_self(), "compute");
      PlaceThisThread(team_, thread);
      if (on_thread_start) on_thread_start();
      WorkerLoop(thread);
    });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t tasks, Task task) {
  if (workers_.empty() || tasks == 1) {
    for (int64_t index = 0; index < tasks; ++index) task(index, 0);
    return;
  }
  tasks_ = tasks;
  task_ = &task;
  next_task_.store(0, std::memory_order_relaxed);
  idle_workers_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  TakeTasks(0);
  // The tail is one task long at most, so waiting is mostly spinning.
  const int all = static_cast<int>(workers_.size());
  for (int spins = 0;; ++spins) {
    const int idle = idle_workers_.load(std::memory_order_acquire);
    if (idle == all) return;
    if (spins < kSpins) {
      Pause();
    } else {
      idle_workers_.wait(idle, std::memory_order_acquire);
    }
  }
}

void ThreadPool::TakeTasks(int thread) {
  while (true) {
    const int64_t index = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (index >= tasks_) return;
    (*task_)(index, thread);
  }
}

void ThreadPool::WaitForJob(uint32_t seen) const {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (generation_.load(std::memory_order_acquire) != seen) return;
    Pause();
  }
  generation_.wait(seen, std::memory_order_acquire);
}

void ThreadPool::WorkerLoop(int thread) {
  uint32_t seen = 0;
  while (true) {
    WaitForJob(seen);
    ++seen;
    if (stopping_) return;
    TakeTasks(thread);
    idle_workers_.fetch_add(1, std::memory_order_release);
    idle_workers_.notify_one();
  }
}

}  // namespace attendant
