// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "server/threads/interruptible_sleep.h"

namespace attendant {

// Calls a function once, after a while, on a thread of its own, by the steady clock.
class DelayedCall {
 public:
  // `task` runs `delay` after the start, unless the destructor has begun by then. `name` is the
  // thread's, at most 15 bytes.
  DelayedCall(const char* name, absl::Duration delay, std::function<void()> task);
  // False if the system refused the thread: the task does not run.
  bool has_thread() const { return thread_.joinable(); }
  // Waits for a task that runs.
  ~DelayedCall();
  DelayedCall(const DelayedCall&) = delete;
  DelayedCall& operator=(const DelayedCall&) = delete;

 private:
  InterruptibleSleep delay_;
  std::thread thread_;
};

}  // namespace attendant
