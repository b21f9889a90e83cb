// SPDX-License-Identifier: Apache-2.0
#include "server/http/port/http_endpoint.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
// Boost 1.74 uses std::exchange without including <utility>.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/http/connection/http_connection.h"
#include "server/http/port/peer_name.h"
#include "server/metrics/server_metrics.h"
#include "server/net/listening_socket.h"
#include "server/retry/retry_hint.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr char kLivePath[] = "/healthz", kReadyPath[] = "/readyz";
constexpr int kBurst = 64;  // connections accepted, or gone, before others are looked at
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);  // others' pace is unknown

// A socket that listens, and how long it waits where a connection cannot be taken.
struct Listener {
  Listener(asio::io_context& loop, FileDescriptor fd) : socket(loop, fd.release()), pause(loop) {}

  asio::posix::stream_descriptor socket;
  asio::steady_timer pause;
};

// A page that is made, and compressed, once for all clients that ask at the same time: they must
// not keep a probe waiting.
struct RoundPage {
  HttpPage page;
  std::optional<std::string> text = {};
  std::optional<HttpResponse> plain = {}, gzip = {};
};

HttpResponse ProbeAnswer(const absl::Status& status, absl::string_view yes) {
  if (status.ok()) return {.body = absl::StrCat(yes, "\n")};
  return {.code = 503, .body = absl::StrCat("not ", yes, ": ", status.message(), "\n")};
}

}  // namespace

struct HttpEndpoint::Impl final : HttpConnection::Host {
  // It only goes forward.
  enum class Phase {
    kServing,
    kEndingConnections,  // each answer ends its connection
    kClosing             // likewise, and routes take no requests
  };

  Impl(ListeningSocket listening, ServerMetrics& counters, HttpProbes answers,
       std::vector<HttpPage> more_pages, HttpDoors served);
  ~Impl() override;

  bool HasPage(absl::string_view path) override;
  HttpResponse Page(absl::string_view path, bool takes_gzip) override;
  bool loopback() const override { return only_loopback; }
  const HttpRoutes& routes() const override { return table; }
  const RequestDependencies& requests() const override { return *doors.requests; }
  int64_t max_request_bytes() const override { return doors.limits.max_request_bytes; }
  const HttpConnection::Times& times() const override { return doors.times; }
  absl::Duration max_write() const override { return absl::Seconds(doors.limits.max_write_s); }
  absl::Status Enter(MethodGroup group) override;
  void Leave() override;
  void Started() override;
  void Ended() override;
  bool ends_connections() const override;
  void Closed(const HttpConnection& connection, HttpEnd end) override;

  void Await(Listener& listener);
  void Accept(Listener& listener);
  void Pause(Listener& listener);
  bool CloseIdle();
  void Take(FileDescriptor fd, const sockaddr_storage& peer);
  void AwaitDepartures();
  void CloseAll();
  RoundPage* FindPage(absl::string_view path);  // null: there is none for this port's clients
  const HttpResponse& Once(RoundPage& page, bool takes_gzip);
  size_t max_connections() const {
    return static_cast<size_t>(doors.limits.max_connections + HttpLimits::kPageConnections);
  }

  const int port;
  const bool only_loopback;
  ServerMetrics& metrics;
  const HttpProbes probes;
  const HttpRoutes table;
  const HttpDoors doors;  // its routes are in `table`

  const std::shared_ptr<asio::io_context> loop = std::make_shared<asio::io_context>(1);

  // Only the loop's thread uses these.
  std::vector<std::unique_ptr<Listener>> listeners;
  asio::posix::stream_descriptor departures{*loop, epoll_create1(EPOLL_CLOEXEC)};
  absl::flat_hash_map<const HttpConnection*, std::shared_ptr<HttpConnection>> connections;
  std::vector<RoundPage> pages;

  mutable absl::Mutex mutex;
  Phase phase ABSL_GUARDED_BY(mutex) = Phase::kServing;
  int64_t entered ABSL_GUARDED_BY(mutex) = 0;  // requests of routes until their answers are written
  SteadyCondVar none_entered;
  int64_t in_work ABSL_GUARDED_BY(mutex) = 0;      // exchanges
  bool all_closed ABSL_GUARDED_BY(mutex) = false;  // no further exchange begins

  asio::executor_work_guard<asio::io_context::executor_type> work{loop->get_executor()};
  std::thread thread;  // last: it uses all of the above
};

HttpEndpoint::Impl::Impl(ListeningSocket listening, ServerMetrics& counters, HttpProbes answers,
                         std::vector<HttpPage> more_pages, HttpDoors served)
    : port(listening.port),
      only_loopback(listening.loopback),
      metrics(counters),
      probes(std::move(answers)),
      table(std::move(served.routes)),
      doors({.requests = served.requests,
             .limits = served.limits,
             .times = served.times,
             .tls = served.tls}) {
  pages.push_back({{.path = "/metrics",
                    .content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = [this] { return metrics.Scrape(); }}});
  for (HttpPage& page : more_pages) pages.push_back({std::move(page)});
  for (FileDescriptor& fd : listening.fds) {
    listeners.push_back(std::make_unique<Listener>(*loop, std::move(fd)));
    Await(*listeners.back());
  }
  AwaitDepartures();
  thread = std::thread([this] {
    pthread_setname_np(pthread_self(), "http");
    loop->run();
  });
}

// The loop ends by itself once nothing is open: no handler is left that would keep a connection.
HttpEndpoint::Impl::~Impl() {
  asio::post(*loop, [this] { CloseAll(); });
  {
    const auto ended = [this]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex) { return all_closed && in_work == 0; };
    absl::MutexLock lock(&mutex, absl::Condition(&ended));
  }
  work.reset();
  thread.join();
}

void HttpEndpoint::Impl::CloseAll() {
  for (const auto& listener : listeners) {
    listener->pause.cancel();
    listener->socket.close();
  }
  departures.close();
  while (!connections.empty()) {
    const std::shared_ptr<HttpConnection> connection = connections.begin()->second;
    connection->Close(HttpEnd::kNormal);
  }
  absl::MutexLock lock(&mutex);
  all_closed = true;
}

bool HttpEndpoint::Impl::HasPage(absl::string_view path) {
  return path == kLivePath || path == kReadyPath || FindPage(path) != nullptr;
}

HttpResponse HttpEndpoint::Impl::Page(absl::string_view path, bool takes_gzip) {
  if (path == kLivePath) return ProbeAnswer(probes.live(), "ok");
  if (path == kReadyPath) return ProbeAnswer(probes.ready(), "ready");
  return Once(*FindPage(path), takes_gzip);
}

RoundPage* HttpEndpoint::Impl::FindPage(absl::string_view path) {
  for (RoundPage& round : pages) {
    if (path == round.page.path && (only_loopback || !round.page.only_on_loopback)) return &round;
  }
  return nullptr;
}

// What is ready to run now runs before the page is forgotten.
const HttpResponse& HttpEndpoint::Impl::Once(RoundPage& round, bool takes_gzip) {
  if (!round.text) {
    round.text = round.page.body();
    asio::post(*loop, [&round] {
      round.text.reset();
      round.plain.reset();
      round.gzip.reset();
    });
  }
  std::optional<HttpResponse>& answer = takes_gzip ? round.gzip : round.plain;
  if (!answer) {
    answer = {.content_type = round.page.content_type, .body = *round.text, .compressible = true};
    Compress(takes_gzip, *answer);
  }
  return *answer;
}

absl::Status HttpEndpoint::Impl::Enter(MethodGroup group) {
  absl::MutexLock lock(&mutex);
  if (phase == Phase::kClosing) return absl::UnavailableError("the server stops");
  if (entered >= doors.limits.max_connections && group != MethodGroup::kOpen) {
    doors.requests->metrics.CountRefused(Refusal::kHttpRequests);
    absl::Status full = absl::ResourceExhaustedError(
        absl::StrCat("the server has ", entered, " HTTP requests in work, the limit is ",
                     doors.limits.max_connections, " (--max_http_connections)"));
    SetRetryAfter(full, kRetryAfter);
    return full;
  }
  ++entered;
  return absl::OkStatus();
}

void HttpEndpoint::Impl::Leave() {
  absl::MutexLock lock(&mutex);
  if (--entered == 0) none_entered.SignalAll();
}

void HttpEndpoint::Impl::Started() {
  absl::MutexLock lock(&mutex);
  ++in_work;
}

void HttpEndpoint::Impl::Ended() {
  absl::MutexLock lock(&mutex);
  --in_work;
}

bool HttpEndpoint::Impl::ends_connections() const {
  absl::MutexLock lock(&mutex);
  return phase != Phase::kServing;
}

void HttpEndpoint::Impl::Await(Listener& listener) {
  listener.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                             [this, &listener](const error_code& error) {
                               if (!error) Accept(listener);
                             });
}

void HttpEndpoint::Impl::Accept(Listener& listener) {
  bool accepted = false;
  for (int i = 0; i < kBurst; ++i) {
    if (connections.size() >= max_connections()) {
      if (accepted) break;  // it shall not give way before its request is read
      if (!CloseIdle()) return Pause(listener);
    }
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    FileDescriptor fd(accept4(listener.socket.native_handle(), reinterpret_cast<sockaddr*>(&peer),
                              &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      Take(std::move(fd), peer);
      accepted = true;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno == EMFILE || errno == ENFILE) {
      // The system says so whether a client waits or not. For the first it is known.
      if (accepted) break;
      if (!CloseIdle()) return Pause(listener);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return Pause(listener);  // no memory
    }
  }
  Await(listener);
}

void HttpEndpoint::Impl::Pause(Listener& listener) {
  listener.pause.expires_after(absl::ToChronoNanoseconds(kAcceptPause));
  listener.pause.async_wait([this, &listener](const error_code& error) {
    if (!error && listener.socket.is_open()) Await(listener);
  });
}

void HttpEndpoint::Impl::Take(FileDescriptor fd, const sockaddr_storage& peer) {
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const int socket = fd.get();
  const std::shared_ptr<HttpConnection> connection =
      MakeHttpConnection(loop, std::move(fd), PeerName(peer), *this, doors.tls);
  epoll_event end{.events = EPOLLRDHUP | EPOLLET, .data = {.ptr = connection.get()}};
  if (connection == nullptr ||
      epoll_ctl(departures.native_handle(), EPOLL_CTL_ADD, socket, &end) != 0) {
    return metrics.CountHttpConnection(HttpEnd::kSystem);
  }
  connections.emplace(connection.get(), connection);
  connection->Start();
}

void HttpEndpoint::Impl::Closed(const HttpConnection& connection, HttpEnd end) {
  connections.erase(&connection);
  metrics.CountHttpConnection(end);
}

// The end of a client cancels its request also where bytes before it are unread, as the next
// request or TLS's close_notify are. Asio would tell of those bytes, and of nothing behind them.
void HttpEndpoint::Impl::AwaitDepartures() {
  departures.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (error) return;
    std::array<epoll_event, kBurst> ends;
    const int count = epoll_wait(departures.native_handle(), ends.data(), kBurst, 0);
    for (int i = 0; i < count; ++i) {
      const auto gone = connections.find(
          static_cast<const HttpConnection*>(ends[static_cast<size_t>(i)].data.ptr));
      if (gone != connections.end()) gone->second->PeerClosed();
    }
    AwaitDepartures();
  });
}

// A new connection takes the place of the one that waits for longest between two requests. New ones
// hold at most the places of pages, and bodies on their way those of requests: of what is beyond,
// the oldest one goes first. False: all have a request in work.
bool HttpEndpoint::Impl::CloseIdle() {
  struct Group {
    int64_t size = 0;
    HttpConnection* oldest = nullptr;
  };
  std::map<HttpConnection::Phase, Group> groups;
  for (const auto& [key, connection] : connections) {
    Group& group = groups[connection->phase()];
    ++group.size;
    if (group.oldest == nullptr || connection->idle_since() < group.oldest->idle_since()) {
      group.oldest = connection.get();
    }
  }
  const Group& fresh = groups[HttpConnection::Phase::kNew];
  const Group& waiting = groups[HttpConnection::Phase::kWaiting];
  const Group& sending = groups[HttpConnection::Phase::kSending];
  const bool many_bodies = sending.size > doors.limits.max_connections;
  HttpConnection* gives_way = sending.oldest;
  if (fresh.size > 0 && !many_bodies) gives_way = fresh.oldest;
  if (waiting.size > 0) gives_way = waiting.oldest;
  if (fresh.size >= HttpLimits::kPageConnections) gives_way = fresh.oldest;
  if (gives_way == nullptr) return false;
  gives_way->Close(HttpEnd::kReplaced);
  return true;
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpEndpoint::~HttpEndpoint() = default;
int HttpEndpoint::port() const { return impl_->port; }
bool HttpEndpoint::loopback() const { return impl_->only_loopback; }

void HttpEndpoint::EndConnections() {
  absl::MutexLock lock(&impl_->mutex);
  impl_->phase = std::max(impl_->phase, Impl::Phase::kEndingConnections);
}

void HttpEndpoint::Close(absl::Time deadline) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->phase = Impl::Phase::kClosing;
  while (impl_->entered > 0 && SteadyNow() < deadline) {
    impl_->none_entered.WaitUntil(impl_->mutex, deadline);
  }
}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Listen(const std::string& address,
                                                                   ServerMetrics& metrics,
                                                                   HttpProbes probes,
                                                                   std::vector<HttpPage> pages,
                                                                   HttpDoors doors) {
  absl::StatusOr<ListeningSocket> socket = ListenOn(address);
  if (!socket.ok()) return socket.status();
  return Listen(*std::move(socket), metrics, std::move(probes), std::move(pages), std::move(doors));
}

std::unique_ptr<HttpEndpoint> HttpEndpoint::Listen(ListeningSocket socket, ServerMetrics& metrics,
                                                   HttpProbes probes, std::vector<HttpPage> pages,
                                                   HttpDoors doors) {
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::make_unique<Impl>(
      std::move(socket), metrics, std::move(probes), std::move(pages), std::move(doors))));
}

}  // namespace attendant
