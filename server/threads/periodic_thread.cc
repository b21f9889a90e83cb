// SPDX-License-Identifier: Apache-2.0
#include "server/threads/periodic_thread.h"

#include <pthread.h>

#include <utility>

namespace attendant {

PeriodicThread::PeriodicThread(const char* name, absl::Duration interval,
                               std::function<void()> task)
    : thread_([this, interval, task = std::move(task)] {
        while (pause_.For(interval)) task();
      }) {
  pthread_setname_np(thread_.native_handle(), name);
}

PeriodicThread::~PeriodicThread() {
  pause_.Interrupt();
  thread_.join();
}

}  // namespace attendant
