// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace attendant {

// Waits for SIGTERM and SIGINT on a thread of its own, where anything may be called. The first one
// calls `on_stop`, the second ends the process at once.
class StopSignals {
 public:
  // Blocks both signals in the calling thread and all that it starts later: make it first in main.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void Watch(std::function<void()> on_stop);  // once

 private:
  void Wait(const std::function<void()>& on_stop) const;

  sigset_t signals_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace attendant
