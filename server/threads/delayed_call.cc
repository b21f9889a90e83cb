// SPDX-License-Identifier: Apache-2.0
#include "server/threads/delayed_call.h"

#include <pthread.h>

#include <system_error>
#include <utility>

namespace attendant {

DelayedCall::DelayedCall(const char* name, absl::Duration delay, std::function<void()> task) {
  try {
    thread_ = std::thread([this, delay, task = std::move(task)] {
      if (delay_.For(delay)) task();
    });
  } catch (const std::system_error&) {  // no thread is left
    return;
  }
  pthread_setname_np(thread_.native_handle(), name);
}

DelayedCall::~DelayedCall() {
  delay_.Interrupt();
  if (thread_.joinable()) thread_.join();
}

}  // namespace attendant
