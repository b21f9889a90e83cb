// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/core/threads/thread_team.h"

namespace attendant {

// The threads of one session: the caller and `threads - 1` workers, each in its place. Between two
// jobs that follow at once the workers spin for some microseconds; then they sleep. A worker that
// has no processor when a job begins, asleep or because others want it, is not waited for: the rest
// do its share. Thread-confined: one caller at a time.
class ThreadPool {
 public:
  using Task = absl::FunctionRef<void(int64_t index, int thread)>;

  static constexpr int kMaxThreads = 4096;

  // `on_thread_start` runs once on every worker, before any task. Throws when the system refuses a
  // thread. REQUIRES: at most kMaxThreads.
  explicit ThreadPool(ThreadTeam team, std::function<void()> on_thread_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // The calling thread is the caller from now on: takes its place in the team.
  void PlaceCaller() const { PlaceThisThread(team_, 0); }

  // Calls `task(index, thread)` for every index in [0, tasks), each once, lower indexes handed out
  // first; `thread` in [0, threads()) says whose scratch to use. Returns when all are done, with
  // everything they wrote visible. Tasks must not throw. Takes no lock and never allocates.
  void ParallelFor(int64_t tasks, Task task);

  // Lets ParallelFor leave out tasks that have not begun while `*stop` is true; their results are
  // then undefined. Null: never. `stop` must live until the next call. Not called during
  // ParallelFor.
  void StopWhen(const std::atomic<bool>* stop) { stop_ = stop; }

 private:
  void Start(const std::function<void()>& on_thread_start);
  void Stop();
  void WorkerLoop(int thread);
  uint32_t WaitForJob(uint32_t seen) const;
  bool Enter(uint32_t job);
  void Leave();
  void WaitForWorkers();
  void TakeTasks(int thread);
  bool Stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  const ThreadTeam team_;
  // One job at a time. `tasks_`, `task_` and `stop_` are written before `state_` opens it, and stay
  // until it is closed and every worker that entered has left.
  int64_t tasks_ = 0;
  const Task* task_ = nullptr;
  const std::atomic<bool>* stop_ = nullptr;
  // From the lowest bit: how many workers are in the job, whether it is open, and its number.
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<int64_t> next_task_{0};
  alignas(64) std::atomic<uint32_t> departures_{0};  // the caller sleeps on it
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace attendant
