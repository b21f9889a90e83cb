// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "server/threads/interruptible_sleep.h"

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
  InterruptibleSleep pause_;
  std::thread thread_;
};

}  // namespace attendant
