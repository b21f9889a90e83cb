// SPDX-License-Identifier: Apache-2.0
#include "server/threads/periodic_thread.h"

#include <pthread.h>

#include <utility>

namespace attendant {

PeriodicThread::PeriodicThread(const char* name, absl::Duration interval,
                               std::function<void()> task)
    : interval_(interval), task_(std::move(task)), thread_([this] { Loop(); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

PeriodicThread::~PeriodicThread() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void PeriodicThread::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) return;
    }
    task_();
  }
}

}  // namespace attendant
