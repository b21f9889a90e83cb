// SPDX-License-Identifier: Apache-2.0
#include "server/task_pool.h"

#include <pthread.h>

#include <utility>

namespace attendant {

TaskPool::TaskPool(int threads, const char* name) {
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

void TaskPool::Post(Task task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void TaskPool::AwaitIdle() {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tasks_.empty() && running_ == 0;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&idle));
}

void TaskPool::Work() {
  const auto may_go_on = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !tasks_.empty();
  };
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&may_go_on));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      ++running_;
    }
    task();
    task = nullptr;
    absl::MutexLock lock(&mutex_);
    --running_;
  }
}

}  // namespace attendant
