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
    stop_.SignalAll();
  }
  thread_.join();
}

bool PeriodicThread::Pause() {
  const absl::Time end = SteadyNow() + interval_;
  absl::MutexLock lock(&mutex_);
  while (!stopping_ && SteadyNow() < end) stop_.WaitUntil(mutex_, end);
  return stopping_;
}

void PeriodicThread::Loop() {
  while (!Pause()) task_();
}

}  // namespace attendant
