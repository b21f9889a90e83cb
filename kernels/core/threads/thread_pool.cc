// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/thread_pool.h"

#include <pthread.h>

#include <utility>

#include "kernels/core/check.h"

namespace attendant {
namespace {

// About 20 us: longer than the pause between two phases of a layer, short beside a context switch's
// cost to whoever else wants the processor.
constexpr int kSpins = 1000;

// Parts of ThreadPool::state_.
constexpr uint32_t kOpen = 1u << 12;
constexpr uint32_t kWorkers = kOpen - 1;
static_assert(ThreadPool::kMaxThreads - 1 == kWorkers);
constexpr uint32_t kNumber = 1u << 13;  // one job on
uint32_t NumberOf(uint32_t state) { return state & ~(kNumber - 1); }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(ThreadTeam team, std::function<void()> on_thread_start)
    : team_(std::move(team)) {
  ATTENDANT_CHECK(team_.threads <= kMaxThreads);
  try {
    Start(on_thread_start);
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Start(const std::function<void()>& on_thread_start) {
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

void ThreadPool::Stop() {
  stopping_ = true;
  state_.fetch_add(kNumber);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t tasks, Task task) {
  if (workers_.empty() || tasks == 1) {
    for (int64_t index = 0; index < tasks && !Stopped(); ++index) task(index, 0);
    return;
  }
  tasks_ = tasks;
  task_ = &task;
  next_task_.store(0, std::memory_order_relaxed);
  const uint32_t job = NumberOf(state_.load(std::memory_order_relaxed)) + kNumber;
  state_.store(job | kOpen, std::memory_order_release);
  state_.notify_all();
  TakeTasks(0);
  state_.fetch_and(~kOpen, std::memory_order_relaxed);
  WaitForWorkers();
}

// Until those who entered the job, which is closed, have left it. The tail is one task long at
// most, so waiting is mostly spinning.
void ThreadPool::WaitForWorkers() {
  for (int spins = 0;; ++spins) {
    const uint32_t departures = departures_.load(std::memory_order_acquire);
    if ((state_.load(std::memory_order_acquire) & kWorkers) == 0) return;
    if (spins < kSpins) {
      Pause();
    } else {
      departures_.wait(departures, std::memory_order_acquire);
    }
  }
}

// False when the job is over, or another's turn has come.
bool ThreadPool::Enter(uint32_t job) {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while ((state & kOpen) != 0 && NumberOf(state) == job) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::Leave() {
  state_.fetch_sub(1, std::memory_order_release);
  departures_.fetch_add(1, std::memory_order_release);
  departures_.notify_one();
}

void ThreadPool::TakeTasks(int thread) {
  while (true) {
    const int64_t index = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (index >= tasks_) return;
    if (Stopped()) return;
    (*task_)(index, thread);
  }
}

// The number of a job other than `seen`.
uint32_t ThreadPool::WaitForJob(uint32_t seen) const {
  for (int spins = 0;; ++spins) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (NumberOf(state) != seen) return NumberOf(state);
    if (spins < kSpins) {
      Pause();
    } else {
      state_.wait(state, std::memory_order_acquire);
    }
  }
}

void ThreadPool::WorkerLoop(int thread) {
  uint32_t job = 0;
  while (true) {
    job = WaitForJob(job);
    if (stopping_) return;
    if (!Enter(job)) continue;
    TakeTasks(thread);
    Leave();
  }
}

}  // namespace attendant
