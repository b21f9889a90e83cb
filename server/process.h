// SPDX-License-Identifier: Apache-2.0
// The parts of a server process that serve nothing: its port file, its word to the service manager
// and its stop signals.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// Writes the lines grpc=PORT and http=PORT to `path`, at once or not at all: a reader never finds
// half a file.
absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port);

// Sends `state`, lines like READY=1, to the service manager that started the process and named its
// socket in NOTIFY_SOCKET, as sd_notify(3) does. Without that name it does nothing.
void NotifyServiceManager(const std::string& state);

// Waits for SIGTERM, SIGINT and, unless it is ignored as under nohup(1), SIGHUP: on a thread of its
// own, where anything may be called. The first signal calls `on_stop`, one that comes `repeat_time`
// later or more ends the process at once. Those between are of the same stop: a wrapper passes
// signals on to a process whose group gets them too.
class StopSignals {
 public:
  // Blocks the signals in the calling thread and all that it starts later: make it first in main.
  // SIGPIPE and SIGXFSZ are ignored from then on: a write that causes one fails.
  explicit StopSignals(absl::Duration repeat_time = absl::Milliseconds(500));
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void Watch(std::function<void()> on_stop);  // once

 private:
  void Wait(const std::function<void()>& on_stop) const;
  int NextSignal() const;

  const absl::Duration repeat_time_;
  sigset_t signals_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace attendant
