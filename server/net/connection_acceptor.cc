// SPDX-License-Identifier: Apache-2.0
#include "server/net/connection_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace attendant {
namespace {

using Address = std::array<unsigned char, sizeof(in6_addr)>;  // IPv4 as ::ffff:a.b.c.d

Address AddressOf(const sockaddr_storage& peer) {
  Address address{};
  if (peer.ss_family == AF_INET6) {
    std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr,
                address.size());
  } else {
    const in_addr v4 = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    address[10] = address[11] = 0xff;
    std::memcpy(&address[12], &v4, sizeof(v4));
  }
  return address;
}

ino_t SocketNumber(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

FileDescriptor OpenReserve() { return FileDescriptor(eventfd(0, EFD_CLOEXEC)); }

// As gRPC's listener does. Unanswered data ends a connection after as long as an unanswered ping.
void Configure(int fd) {
  const int on = 1;
  const unsigned unanswered_ms = 20'000;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
}

}  // namespace

absl::string_view RefusalName(ConnectionObserver::Refusal refusal) {
  constexpr absl::string_view kNames[] = {"limit", "address_limit", "descriptors"};
  static_assert(std::size(kNames) == static_cast<size_t>(ConnectionObserver::Refusal::kEnd));
  return kNames[static_cast<size_t>(refusal)];
}

struct ConnectionAcceptor::Impl {
  using Clock = std::chrono::steady_clock;
  using Refusal = ConnectionObserver::Refusal;
  struct Connection {
    int fd;  // the server's
    ino_t number;
  };
  using Connections = std::vector<Connection>;

  Impl(ListeningSocket listening, FileDescriptor wake_event, FileDescriptor reserve_descriptor,
       const Limits& connection_limits, ConnectionObserver& connection_observer, Serve take)
      : port(listening.port),
        wake(std::move(wake_event)),
        limits(connection_limits),
        observer(connection_observer),
        socket(std::move(listening)),
        serve(std::move(take)),
        reserve(std::move(reserve_descriptor)),
        thread([this] { Loop(); }) {}
  ~Impl() {
    ending = true;
    Wake();
    thread.join();
  }

  void Wake() const;
  void Loop();
  void StopListening(std::vector<pollfd>& polled);
  int Wait(std::vector<pollfd>& polled) const;
  void AcceptFrom(int listener);
  void Take(FileDescriptor fd, const Address& address);
  void RefuseWithReserve(int listener);
  bool HasRoom(const Address& address, Refusal& refusal);
  bool WithinLimits(const Address& address, Refusal& refusal) const;
  void Forget();
  void ForgetIn(Connections& connections);
  void Report();

  static constexpr int kForgetMs = 1000;       // how often closed connections are looked for
  static constexpr int kPauseMs = 100;         // after the system could not accept, or poll
  static constexpr int kBurst = 64;            // connections accepted before others are looked at
  static constexpr int64_t kLooksPerMs = 200;  // of refusals: a tenth of the thread's time

  const int port;
  const FileDescriptor wake;  // readable: stop, accepting at least
  const Limits limits;
  ConnectionObserver& observer;
  std::atomic<bool> ending{false};
  absl::Notification stopped_listening;

  // Only the thread uses these.
  ListeningSocket socket;
  Serve serve;
  FileDescriptor reserve;  // invalid when there was none left
  absl::flat_hash_map<Address, Connections> open;
  int64_t num_open = 0;
  bool paused = false;            // for one round
  Clock::time_point forgot;       // when Forget ran last
  Clock::time_point looks_again;  // when a refusal may look for closed connections

  std::thread thread;  // last: it uses all of the above
};

void ConnectionAcceptor::Impl::Wake() const {
  const uint64_t one = 1;
  while (write(wake.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void ConnectionAcceptor::Impl::Loop() {
  pthread_setname_np(pthread_self(), "accept");
  std::vector<pollfd> polled = {{wake.get(), POLLIN, 0}};
  for (const FileDescriptor& fd : socket.fds) polled.push_back({fd.get(), POLLIN, 0});
  while (true) {
    const int ready = Wait(polled);
    paused = false;
    if (ending) return;
    if (polled[0].revents != 0) StopListening(polled);
    if (!reserve.valid()) reserve = OpenReserve();
    if (Clock::now() >= forgot + std::chrono::milliseconds(kForgetMs)) Forget();
    for (size_t i = 1; ready > 0 && i < polled.size(); ++i) {
      if (polled[i].revents != 0) AcceptFrom(polled[i].fd);
    }
    Report();
  }
}

// The thread itself closes what it polls.
void ConnectionAcceptor::Impl::StopListening(std::vector<pollfd>& polled) {
  uint64_t woken = 0;
  while (read(wake.get(), &woken, sizeof(woken)) < 0 && errno == EINTR) {
  }
  polled.resize(1);
  socket.fds.clear();
  serve = nullptr;
  stopped_listening.Notify();
}

// poll, of the wake event alone while accepting is paused.
int ConnectionAcceptor::Impl::Wait(std::vector<pollfd>& polled) const {
  for (pollfd& entry : polled) entry.revents = 0;
  const int ready = paused ? poll(polled.data(), 1, kPauseMs)
                           : poll(polled.data(), polled.size(), num_open == 0 ? -1 : kForgetMs);
  // No memory, perhaps: it would fail again at once.
  if (ready < 0 && errno != EINTR) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
  return ready;
}

void ConnectionAcceptor::Impl::AcceptFrom(int listener) {
  for (int i = 0; i < kBurst; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    FileDescriptor fd(
        accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      Take(std::move(fd), AddressOf(peer));
    } else if (errno == EMFILE || errno == ENFILE) {
      return RefuseWithReserve(listener);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      paused = errno != EAGAIN;  // no memory, perhaps: poll would report the same at once
      return;
    }
  }
}

void ConnectionAcceptor::Impl::Take(FileDescriptor fd, const Address& address) {
  Refusal refusal;
  if (!HasRoom(address, refusal)) return observer.OnRefused(refusal);
  Configure(fd.get());
  open[address].push_back({fd.get(), SocketNumber(fd.get())});
  ++num_open;
  observer.OnAccepted();
  serve(std::move(fd));
}

// The waiting connection would otherwise wake poll again and again.
void ConnectionAcceptor::Impl::RefuseWithReserve(int listener) {
  reserve = FileDescriptor();
  const FileDescriptor refused(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (refused.valid()) observer.OnRefused(Refusal::kDescriptors);
  paused = !refused.valid();
}

// A client that is refused again and again must not keep the thread from others: it may be at its
// own limit, among thousands of connections.
bool ConnectionAcceptor::Impl::HasRoom(const Address& address, Refusal& refusal) {
  if (WithinLimits(address, refusal)) return true;
  const Clock::time_point now = Clock::now();
  if (now < looks_again) return false;
  int64_t looks = num_open;
  if (refusal == Refusal::kAddressLimit) {
    Connections& own = open[address];
    looks = static_cast<int64_t>(own.size());
    ForgetIn(own);
  } else {
    Forget();
  }
  looks_again = now + std::chrono::milliseconds(looks / kLooksPerMs);
  return WithinLimits(address, refusal);
}

bool ConnectionAcceptor::Impl::WithinLimits(const Address& address, Refusal& refusal) const {
  refusal = Refusal::kLimit;
  if (num_open >= limits.max_connections) return false;
  if (limits.max_connections_per_address == 0) return true;
  refusal = Refusal::kAddressLimit;
  const auto found = open.find(address);
  return found == open.end() ||
         static_cast<int64_t>(found->second.size()) < limits.max_connections_per_address;
}

// Lets go of the connections that the server has closed.
void ConnectionAcceptor::Impl::Forget() {
  forgot = Clock::now();
  absl::erase_if(open, [this](auto& of_address) {
    ForgetIn(of_address.second);
    return of_address.second.empty();
  });
}

void ConnectionAcceptor::Impl::ForgetIn(Connections& connections) {
  num_open -= static_cast<int64_t>(std::erase_if(connections, [](const Connection& connection) {
    return SocketNumber(connection.fd) != connection.number;
  }));
}

void ConnectionAcceptor::Impl::Report() { observer.OnOpenChanged(num_open); }

ConnectionAcceptor::ConnectionAcceptor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConnectionAcceptor::~ConnectionAcceptor() = default;
int ConnectionAcceptor::port() const { return impl_->port; }

void ConnectionAcceptor::StopAccepting() {
  impl_->Wake();
  impl_->stopped_listening.WaitForNotification();
}

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Start(
    ListeningSocket socket, const Limits& limits, ConnectionObserver& observer, Serve serve) {
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  FileDescriptor reserve = OpenReserve();
  if (!wake.valid() || !reserve.valid()) {
    return absl::UnavailableError(
        absl::StrCat("cannot accept connections: ", std::system_category().message(errno)));
  }
  return std::unique_ptr<ConnectionAcceptor>(new ConnectionAcceptor(std::make_unique<Impl>(
      std::move(socket), std::move(wake), std::move(reserve), limits, observer, std::move(serve))));
}

}  // namespace attendant
