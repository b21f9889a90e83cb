// SPDX-License-Identifier: Apache-2.0
#include "server/net/connection_acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/net/listening_socket.h"

namespace attendant {
namespace {

// How often the process has asked what a descriptor is.
std::atomic<int64_t> looks{0};

// How often the acceptor's poll is still to fail, and when it failed first and succeeded after.
std::atomic<int> polls_to_fail{0};
std::atomic<std::chrono::steady_clock::time_point> first_failed, succeeded;

bool PollFails() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  if (std::string_view(name) != "accept") return false;
  const auto now = std::chrono::steady_clock::now();
  if (polls_to_fail == 0) {
    succeeded = now;
    return false;
  }
  if (first_failed.load() == std::chrono::steady_clock::time_point()) first_failed = now;
  --polls_to_fail;
  return true;
}

}  // namespace
}  // namespace attendant

extern "C" int fstat(int fd, struct stat* status) noexcept {
  ++attendant::looks;
  return fstatat(fd, "", status, AT_EMPTY_PATH);
}

extern "C" int poll(pollfd* polled, nfds_t count, int timeout_ms) {
  if (attendant::PollFails()) {
    errno = ENOMEM;
    return -1;
  }
  const timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
  return ppoll(polled, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

namespace attendant {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kLong = absl::Seconds(30);

// Counts, and lets a test wait for a count.
class Counter final : public ConnectionObserver {
 public:
  void OnAccepted() override {
    absl::MutexLock lock(&mutex_);
    ++accepted_;
  }
  void OnRefused(Refusal reason) override {
    absl::MutexLock lock(&mutex_);
    ++refused_[reason];
  }
  void OnOpenChanged(int64_t open) override {
    absl::MutexLock lock(&mutex_);
    open_ = open;
  }

  bool AwaitOpen(int64_t open) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&]() { return open_ == open; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kLong);
  }
  bool AwaitRefused(Refusal reason, int64_t times) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&]() { return refused_[reason] >= times; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kLong);
  }
  int64_t accepted() {
    absl::MutexLock lock(&mutex_);
    return accepted_;
  }

 private:
  absl::Mutex mutex_;
  int64_t accepted_ = 0;
  int64_t open_ = 0;
  std::map<Refusal, int64_t> refused_;
};

FileDescriptor NewSocket() { return FileDescriptor(socket(AF_INET, SOCK_STREAM, 0)); }

// From 127.0.0.`host`.
bool ConnectTo(int fd, int port, unsigned host = 1) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return false;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

// True once the other side has closed it, false when it sends a byte.
bool IsClosed(int fd) {
  pollfd polled = {fd, POLLIN, 0};
  char byte;
  return poll(&polled, 1, 30'000) == 1 && read(fd, &byte, 1) <= 0;
}

// A server that greets each connection with a byte and keeps it until it is told otherwise.
class ConnectionAcceptorTest : public testing::Test {
 protected:
  void Start(const ConnectionAcceptor::Limits& limits) {
    auto socket = ListenOn("127.0.0.1:0");
    ASSERT_TRUE(socket.ok()) << socket.status();
    auto acceptor =
        ConnectionAcceptor::Start(*std::move(socket), limits, counter_, [this](FileDescriptor fd) {
          absl::MutexLock lock(&mutex_);  // whoever has read the byte finds the connection held
          EXPECT_EQ(send(fd.get(), "x", 1, MSG_NOSIGNAL), 1);
          held_.push_back(std::move(fd));
        });
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
  }

  FileDescriptor Connect(unsigned host = 1) {
    FileDescriptor fd = NewSocket();
    EXPECT_TRUE(ConnectTo(fd.get(), acceptor_->port(), host));
    return fd;
  }
  void CloseOneOnTheServer() {
    absl::MutexLock lock(&mutex_);
    held_.pop_back();
  }

  Counter counter_;
  absl::Mutex mutex_;
  std::vector<FileDescriptor> held_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, HandsOverAndSeesTheEnd) {
  Start({.max_connections = 10});
  const FileDescriptor one = Connect();
  const FileDescriptor two = Connect();
  EXPECT_FALSE(IsClosed(one.get()));
  EXPECT_FALSE(IsClosed(two.get()));
  EXPECT_TRUE(counter_.AwaitOpen(2));
  EXPECT_EQ(counter_.accepted(), 2);
  CloseOneOnTheServer();
  EXPECT_TRUE(counter_.AwaitOpen(1));
}

TEST_F(ConnectionAcceptorTest, SeesTheEndOfConnectionsAlsoOnceItHasStopped) {
  Start({.max_connections = 10});
  const FileDescriptor one = Connect();
  const FileDescriptor two = Connect();
  EXPECT_TRUE(counter_.AwaitOpen(2));
  acceptor_->StopAccepting();
  const FileDescriptor late = NewSocket();
  EXPECT_FALSE(ConnectTo(late.get(), acceptor_->port()));
  CloseOneOnTheServer();
  EXPECT_TRUE(counter_.AwaitOpen(1));
  CloseOneOnTheServer();
  EXPECT_TRUE(counter_.AwaitOpen(0));
}

TEST_F(ConnectionAcceptorTest, ClosesWhatIsAboveTheLimit) {
  Start({.max_connections = 2});
  const FileDescriptor one = Connect();
  const FileDescriptor two = Connect();
  EXPECT_FALSE(IsClosed(one.get()));
  EXPECT_FALSE(IsClosed(two.get()));
  EXPECT_TRUE(IsClosed(Connect().get()));
  EXPECT_TRUE(counter_.AwaitRefused(ConnectionObserver::Refusal::kLimit, 1));
  CloseOneOnTheServer();
  EXPECT_FALSE(IsClosed(Connect().get()));  // at once, not a second later
}

TEST_F(ConnectionAcceptorTest, LimitsEachAddress) {
  Start({.max_connections = 10, .max_connections_per_address = 1});
  const FileDescriptor one = Connect();
  EXPECT_FALSE(IsClosed(one.get()));
  EXPECT_TRUE(IsClosed(Connect().get()));
  const FileDescriptor other = Connect(/*host=*/2);
  EXPECT_FALSE(IsClosed(other.get()));
  EXPECT_TRUE(counter_.AwaitRefused(ConnectionObserver::Refusal::kAddressLimit, 1));
  CloseOneOnTheServer();  // the other address's
  EXPECT_TRUE(IsClosed(Connect().get()));
  EXPECT_FALSE(IsClosed(Connect(/*host=*/2).get()));
}

// Connections that are refused must not keep the thread from others.
TEST_F(ConnectionAcceptorTest, AnAddressAtItsLimitIsRefusedWithoutALookAtTheOthers) {
  constexpr int kOwn = 10, kOthers = 200, kRefused = 100;
  Start({.max_connections = 1000, .max_connections_per_address = kOwn});
  std::vector<FileDescriptor> open;
  for (unsigned i = 0; i < kOthers; ++i) open.push_back(Connect(/*host=*/2 + i % 20));
  for (int i = 0; i < kOwn; ++i) open.push_back(Connect());
  ASSERT_TRUE(counter_.AwaitOpen(kOwn + kOthers));
  const int64_t before = looks;
  for (int i = 0; i < kRefused; ++i) EXPECT_TRUE(IsClosed(Connect().get()));
  EXPECT_TRUE(counter_.AwaitRefused(ConnectionObserver::Refusal::kAddressLimit, kRefused));
  EXPECT_LT(looks - before, kRefused * kOthers / 2) << "a look at all is due each second";
}

TEST_F(ConnectionAcceptorTest, RefusalsLookForClosedConnectionsNowAndThenOnly) {
  constexpr int kMost = 400, kRefused = 300;  // 400 looks in 2 ms
  Start({.max_connections = kMost});
  std::vector<FileDescriptor> open;
  for (int i = 0; i < kMost; ++i) open.push_back(Connect());
  ASSERT_TRUE(counter_.AwaitOpen(kMost));
  const int64_t before = looks;
  const auto start = Clock::now();
  for (int i = 0; i < kRefused; ++i) EXPECT_TRUE(IsClosed(Connect().get()));
  EXPECT_TRUE(counter_.AwaitRefused(ConnectionObserver::Refusal::kLimit, kRefused));
  const int64_t took_ms = (Clock::now() - start) / std::chrono::milliseconds(1) + 1;
  EXPECT_LE(looks - before, kMost * (took_ms / 2 + 1) + kMost * (took_ms / 1000 + 2));
  CloseOneOnTheServer();
  const auto limit = Clock::now() + absl::ToChronoSeconds(kLong);
  while (IsClosed(Connect().get())) ASSERT_LT(Clock::now(), limit);
}

TEST_F(ConnectionAcceptorTest, PausesWherePollFails) {
  Start({.max_connections = 10});
  constexpr int kFailures = 3, kPauseMs = 100;
  polls_to_fail = kFailures;
  const FileDescriptor one = Connect();
  EXPECT_FALSE(IsClosed(one.get()));
  const FileDescriptor two = Connect();
  EXPECT_TRUE(counter_.AwaitOpen(2));
  EXPECT_EQ(polls_to_fail, 0);
  EXPECT_GE(succeeded.load() - first_failed.load(),
            std::chrono::milliseconds(kFailures * kPauseMs));
}

// Takes every descriptor that the process may still have.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{.rlim_cur = 256, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    for (int fd; (fd = dup(0)) >= 0;) taken_.push_back(FileDescriptor(fd));
    EXPECT_EQ(errno, EMFILE);
  }
  ~NoDescriptors() {
    taken_.clear();
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<FileDescriptor> taken_;
};

TEST_F(ConnectionAcceptorTest, SurvivesWithoutDescriptors) {
  Start({.max_connections = 1000});
  std::vector<FileDescriptor> clients;  // connecting takes no descriptor
  for (int i = 0; i < 20; ++i) clients.push_back(NewSocket());
  {
    const NoDescriptors none;
    for (const FileDescriptor& client : clients) {
      ASSERT_TRUE(ConnectTo(client.get(), acceptor_->port()));
      EXPECT_TRUE(IsClosed(client.get()));
    }
    EXPECT_TRUE(counter_.AwaitRefused(ConnectionObserver::Refusal::kDescriptors, 20));
  }
  EXPECT_FALSE(IsClosed(Connect().get()));
}

TEST_F(ConnectionAcceptorTest, ThatCannotStartSaysWhy) {
  auto socket = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  const NoDescriptors none;
  const absl::Status refused =
      ConnectionAcceptor::Start(*std::move(socket), {}, counter_, [](FileDescriptor) {}).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(refused.message(), "cannot accept connections: Too many open files");
}

}  // namespace
}  // namespace attendant
