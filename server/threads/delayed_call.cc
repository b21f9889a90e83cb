// SPDX-License-Identifier: Apache-2.0
#include "server/threads/delayed_call.h"

#include <pthread.h>

#include <utility>

namespace attendant {

DelayedCall::DelayedCall(const char* name, absl::Duration delay, std::function<void()> task)
    : thread_([this, delay, task = std::move(task)] {
        if (delay_.For(delay)) task();
      }) {
  pthread_setname_np(thread_.native_handle(), name);
}

DelayedCall::~DelayedCall() {
  delay_.Interrupt();
  thread_.join();
}

}  // namespace attendant
