// SPDX-License-Identifier: Apache-2.0
#include "server/threads/task_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace attendant {

TaskPool::TaskPool(int threads, const char* name) : max_large_(std::max(threads - 1, 1)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
    pthread_setname_np(threads_.back().native_handle(), name);
  }
}

TaskPool::~TaskPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void TaskPool::Post(Task task, Size size) {
  absl::MutexLock lock(&mutex_);
  (size == Size::kLarge ? large_ : small_).push_back({std::move(task), posted_++});
}

void TaskPool::AwaitIdle() {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return small_.empty() && large_.empty() && running_ == 0;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&idle));
}

std::deque<TaskPool::Waiting>* TaskPool::Next() {
  const bool large_may = !large_.empty() && running_large_ < max_large_;
  if (small_.empty()) return large_may ? &large_ : nullptr;
  return large_may && large_.front().number < small_.front().number ? &large_ : &small_;
}

void TaskPool::Work() {
  const auto may_go_on = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || Next() != nullptr;
  };
  while (true) {
    Task task;
    bool large = false;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&may_go_on));
      std::deque<Waiting>* const next = Next();
      if (next == nullptr) return;  // who runs the large tasks runs those that wait
      task = std::move(next->front().task);
      next->pop_front();
      large = next == &large_;
      ++running_;
      running_large_ += large ? 1 : 0;
    }
    task();
    task = nullptr;
    absl::MutexLock lock(&mutex_);
    --running_;
    running_large_ -= large ? 1 : 0;
  }
}

}  // namespace attendant
