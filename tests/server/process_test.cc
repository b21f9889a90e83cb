// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// A service manager's socket with this name, as NOTIFY_SOCKET has it.
class Manager {
 public:
  explicit Manager(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::copy(name.begin(), name.end(), address.sun_path);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const size_t length = offsetof(sockaddr_un, sun_path) + name.size();
    EXPECT_EQ(
        bind(socket_, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length)),
        0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    close(socket_);
  }
  // Empty: nothing was sent.
  std::string Received() const {
    std::string state(256, '\0');
    const ssize_t size = recv(socket_, state.data(), state.size(), MSG_DONTWAIT);
    state.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return state;
  }

 private:
  const int socket_;
};

TEST(NotifyServiceManagerTest, ReachesTheSocketOfEachKindOfName) {
  const std::string path = absl::StrCat(testing::TempDir(), "notify.", getpid());
  for (const std::string& name : {path, absl::StrCat("@attendant.notify.", getpid())}) {
    const Manager manager(name);
    NotifyServiceManager("READY=1");
    EXPECT_EQ(manager.Received(), "READY=1") << name;
  }
  unlink(path.c_str());
}

TEST(NotifyServiceManagerTest, GoesOnWhenNobodyListens) {
  NotifyServiceManager("READY=1");
  for (const std::string& name :
       {std::string(), absl::StrCat(testing::TempDir(), "none"), std::string(500, 'x')}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    NotifyServiceManager("READY=1");
  }
  unsetenv("NOTIFY_SOCKET");
}

// How often a process stops that gets SIGHUP, then SIGTERM.
int StopsAfterHangup(int last_signal) {
  std::atomic<int> stops{0};
  StopSignals signals;
  signals.Watch([&stops] { ++stops; });
  kill(getpid(), SIGHUP);
  if (last_signal != 0) kill(getpid(), last_signal);
  while (stops == 0) std::this_thread::yield();
  return stops;
}

TEST(StopSignalsTest, SighupStopsLikeSigterm) { EXPECT_EQ(StopsAfterHangup(0), 1); }

TEST(StopSignalsTest, AnIgnoredSighupStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(StopsAfterHangup(SIGTERM), 1);  // a second one would end this process
  std::signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace attendant
