// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

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

// This process, watched.
class Stops {
 public:
  explicit Stops(absl::Duration repeat_time = absl::Hours(1)) : signals_(repeat_time) {
    signals_.Watch([this] { ++count_; });
  }
  void Send(int signal) { kill(getpid(), signal); }
  void Await() const {
    while (count_ == 0) std::this_thread::yield();
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
  StopSignals signals_;
};

constexpr absl::Duration kTimeToArrive = absl::Milliseconds(100);

TEST(StopSignalsTest, SighupStopsLikeSigterm) {
  std::signal(SIGHUP, SIG_DFL);  // also of tests that run under nohup(1)
  Stops stops;
  stops.Send(SIGHUP);
  stops.Await();
  EXPECT_EQ(stops.count(), 1);
}

TEST(StopSignalsTest, AnIgnoredSighupStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    Stops stops;
    stops.Send(SIGHUP);
    absl::SleepFor(kTimeToArrive);
    EXPECT_EQ(stops.count(), 0);
    stops.Send(SIGTERM);
    stops.Await();
    EXPECT_EQ(stops.count(), 1);
  }
  std::signal(SIGHUP, SIG_DFL);
}

// timeout(1) sends one to its child, and one to the group.
TEST(StopSignalsTest, OneThatFollowsAtOnceIsOfTheSameStop) {
  Stops stops;
  for (const int signal : {SIGTERM, SIGTERM, SIGINT}) {
    stops.Send(signal);
    stops.Await();
  }
  absl::SleepFor(kTimeToArrive);
  EXPECT_EQ(stops.count(), 1);  // and the process goes on
}

TEST(StopSignalsTest, ALaterOneEndsTheProcess) {
  const auto stop_twice = [] {
    Stops stops(absl::Milliseconds(1));
    stops.Send(SIGTERM);
    stops.Await();
    absl::SleepFor(kTimeToArrive);
    stops.Send(SIGINT);
    while (true) pause();
  };
  EXPECT_EXIT(stop_twice(), testing::ExitedWithCode(128 + SIGINT), "");
}

// As an access log does under ulimit -f.
TEST(StopSignalsTest, AFileThatReachesItsLimitDoesNotEndTheProcess) {
  const auto write_too_much = [] {
    const StopSignals signals;
    std::FILE* const file = std::tmpfile();
    rlimit limit{};
    bool limited = file != nullptr && getrlimit(RLIMIT_FSIZE, &limit) == 0;
    limit.rlim_cur = 0;
    limited = limited && setrlimit(RLIMIT_FSIZE, &limit) == 0;
    _exit(limited && write(fileno(file), "x", 1) < 0 && errno == EFBIG ? 0 : 1);
  };
  EXPECT_EXIT(write_too_much(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attendant
