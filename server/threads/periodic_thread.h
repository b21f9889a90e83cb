// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_time.h"

namespace attendant {

// Calls a function again and again on a thread of its own, by the steady clock.
class PeriodicThread {
 public:
  // `task` runs `interval` after the start, and after each of its ends, until the destructor
  // returns. `name` is the thread's, at most 15 bytes.
  PeriodicThread(const char* name, absl::Duration interval, std::function<void()> task);
  ~PeriodicThread();
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  // Waits for the interval. Returns whether the destructor has begun.
  bool Pause();
  void Loop();

  const absl::Duration interval_;
  const std::function<void()> task_;
  absl::Mutex mutex_;
  SteadyCondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant
