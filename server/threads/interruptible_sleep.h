// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_time.h"

namespace attendant {

// A sleep by the steady clock that another thread can end. Thread-safe.
class InterruptibleSleep {
 public:
  // Returns after `duration`, or at once when Interrupt is called or has been. True: it was not.
  bool For(absl::Duration duration);
  void Interrupt();

 private:
  absl::Mutex mutex_;
  SteadyCondVar interruption_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant
