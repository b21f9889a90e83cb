// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

// The steady clock's time. It counts from an arbitrary moment and never goes back, whatever happens
// to the wall clock: steady times compare with each other only.
absl::Time SteadyNow();

// A condition variable for an absl::Mutex whose timed waits follow the steady clock; those of
// absl::Mutex and absl::CondVar follow the wall clock. Thread-safe.
class SteadyCondVar {
 public:
  void Signal() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

  // Waits for a signal, at most until `deadline`, a steady time. May return early. REQUIRES: the
  // caller holds `mutex`, which is free while it waits.
  void WaitUntil(absl::Mutex& mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any condition_;
};

}  // namespace attendant
