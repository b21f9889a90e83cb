// SPDX-License-Identifier: Apache-2.0
#include "server/threads/interruptible_sleep.h"

namespace attendant {

bool InterruptibleSleep::For(absl::Duration duration) {
  const absl::Time end = SteadyNow() + duration;
  absl::MutexLock lock(&mutex_);
  while (!interrupted_ && SteadyNow() < end) interruption_.WaitUntil(mutex_, end);
  return !interrupted_;
}

void InterruptibleSleep::Interrupt() {
  absl::MutexLock lock(&mutex_);
  interrupted_ = true;
  interruption_.SignalAll();
}

}  // namespace attendant
