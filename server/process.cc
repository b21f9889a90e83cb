// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/threads/steady_time.h"
#include "spdlog/spdlog.h"

namespace attendant {

absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port) {
  const std::string draft = absl::StrCat(path, ".", getpid(), ".tmp");
  std::ofstream file(draft, std::ios::trunc);
  file << "grpc=" << grpc_port << "\nhttp=" << http_port << "\n";
  file.close();
  if (file.good() && std::rename(draft.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const std::string reason = std::strerror(errno);
  std::remove(draft.c_str());
  return absl::UnavailableError(absl::StrCat("cannot write --port_file ", path, ": ", reason));
}

void NotifyServiceManager(const std::string& state) {
  const char* const variable = std::getenv("NOTIFY_SOCKET");
  const std::string name = variable == nullptr ? "" : variable;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (name.empty() || name.size() > sizeof(address.sun_path)) return;
  std::copy(name.begin(), name.end(), address.sun_path);
  if (name.front() == '@') address.sun_path[0] = '\0';  // a name that is in no file system
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (sendto(socket, state.data(), state.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    spdlog::warn("NOTIFY_SOCKET {}: {}", name, std::strerror(errno));
  }
  close(socket);
}

StopSignals::StopSignals(absl::Duration repeat_time) : repeat_time_(repeat_time) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that goes away is an error of its socket, nothing more
  std::signal(SIGXFSZ, SIG_IGN);  // a log that reaches the limit of ulimit -f cannot be written
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

StopSignals::~StopSignals() {
  if (!thread_.joinable()) return;
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // wakes sigwait
  thread_.join();
}

void StopSignals::Watch(std::function<void()> on_stop) {
  thread_ = std::thread([this, on_stop = std::move(on_stop)] { Wait(on_stop); });
}

void StopSignals::Wait(const std::function<void()>& on_stop) const {
  constexpr int kExitOfSignal = 128;  // as shells report it
  int signal = NextSignal();
  if (ending_) return;
  const absl::Time stopped = SteadyNow();
  spdlog::info("SIG{}: stopping; another, {} later or more, ends at once", sigabbrev_np(signal),
               absl::FormatDuration(repeat_time_));
  on_stop();
  do {
    signal = NextSignal();
    if (ending_) return;
  } while (SteadyNow() - stopped < repeat_time_);
  _exit(kExitOfSignal + signal);
}

int StopSignals::NextSignal() const {
  int signal = 0;
  sigwait(&signals_, &signal);
  return signal;
}

}  // namespace attendant
