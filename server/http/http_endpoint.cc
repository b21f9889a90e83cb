// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_endpoint.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/http_connection.h"
#include "server/metrics/server_metrics.h"
#include "server/net/listening_socket.h"

namespace attendant {

// A poll loop on one thread, however many clients connect. Debian 12's civetweb is built without
// IPv6 (mg_check_feature(8) is 0), takes 2 s to stop, and gives every slow client a thread.
struct HttpEndpoint::Impl {
  Impl(ListeningSocket listening, FileDescriptor wake_event, const ServerMetrics& server_metrics,
       Readiness is_ready, std::vector<HttpPage> more_pages)
      : socket(std::move(listening)),
        wake(std::move(wake_event)),
        metrics(server_metrics),
        readiness(std::move(is_ready)),
        pages(std::move(more_pages)),
        thread([this] { Loop(); }) {}
  ~Impl() {
    const uint64_t one = 1;
    while (write(wake.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread.join();
  }

  HttpResponse Answer(const HttpRequest& request);
  static const std::string& Once(std::string& text, const std::function<std::string()>& make);
  void Loop();
  void Accept(int listener);
  std::vector<pollfd> PollSet() const;
  int PollTimeoutMs() const;
  void Serve(const std::vector<pollfd>& polled);
  bool MakeRoom();

  // With so many, a new connection takes the place of the oldest one whose request has not come:
  // idle clients must not keep a probe waiting.
  static constexpr size_t kMaxConnections = 128;
  static constexpr int kAcceptPauseMs = 100;

  const ListeningSocket socket;
  const FileDescriptor wake;  // readable: stop
  const ServerMetrics& metrics;
  const Readiness readiness;
  const std::vector<HttpPage> pages;

  // Only the loop's thread uses these.
  const HttpHandler handler = [this](const HttpRequest& request) { return Answer(request); };
  std::vector<HttpConnection> connections;
  bool accept_paused = false;  // for one round, after accept failed
  // Of this round; empty: not made yet.
  std::string scrape;
  std::vector<std::string> bodies;  // of `pages`

  std::thread thread;  // last: it uses all of the above
};

// One text for all clients that ask at the same time: they must not keep a probe waiting.
const std::string& HttpEndpoint::Impl::Once(std::string& text,
                                            const std::function<std::string()>& make) {
  if (text.empty()) text = make();
  return text;
}

HttpResponse HttpEndpoint::Impl::Answer(const HttpRequest& request) {
  if (request.path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = Once(scrape, [this] { return metrics.Scrape(); })};
  }
  if (request.path == "/healthz") return {.body = "ok\n"};
  if (request.path == "/readyz") {
    const absl::Status ready = readiness();
    if (ready.ok()) return {.body = "ready\n"};
    return {.code = 503, .body = absl::StrCat("not ready: ", ready.message(), "\n")};
  }
  for (size_t i = 0; i < pages.size(); ++i) {
    const HttpPage& page = pages[i];
    if (request.path != page.path || (page.only_on_loopback && !socket.loopback)) continue;
    return {.content_type = page.content_type, .body = Once(bodies[i], page.body)};
  }
  return {.code = 404, .body = "not found; there are /metrics, /healthz and /readyz\n"};
}

void HttpEndpoint::Impl::Loop() {
  pthread_setname_np(pthread_self(), "http");
  while (true) {
    std::vector<pollfd> polled = PollSet();
    const int timeout_ms = PollTimeoutMs();
    accept_paused = false;
    if (poll(polled.data(), polled.size(), timeout_ms) < 0) continue;  // EINTR
    if (polled[0].revents != 0) return;
    Serve(polled);
    for (size_t i = 1; i <= socket.fds.size(); ++i) {
      if (polled[i].revents != 0) Accept(polled[i].fd);
    }
  }
}

// [0] wake, then the listening sockets (negative: ignored), then the connections.
std::vector<pollfd> HttpEndpoint::Impl::PollSet() const {
  const bool full = connections.size() >= kMaxConnections &&
                    std::none_of(connections.begin(), connections.end(),
                                 [](const HttpConnection& c) { return c.reading(); });
  const bool accepting = !full && !accept_paused;
  std::vector<pollfd> polled = {{wake.get(), POLLIN, 0}};
  for (const FileDescriptor& fd : socket.fds) {
    polled.push_back({accepting ? fd.get() : -1, POLLIN, 0});
  }
  for (const HttpConnection& connection : connections) {
    polled.push_back({connection.fd(), connection.events(), 0});
  }
  return polled;
}

int HttpEndpoint::Impl::PollTimeoutMs() const {
  absl::Duration timeout =
      accept_paused ? absl::Milliseconds(kAcceptPauseMs) : absl::InfiniteDuration();
  const absl::Time now = absl::Now();
  for (const HttpConnection& connection : connections) {
    timeout = std::min(timeout, connection.deadline() - now);
  }
  if (timeout == absl::InfiniteDuration()) return -1;
  // Rounded up, so that the deadline has passed when poll returns.
  return static_cast<int>(absl::ToInt64Milliseconds(std::max(timeout, absl::ZeroDuration()))) + 1;
}

void HttpEndpoint::Impl::Serve(const std::vector<pollfd>& polled) {
  const absl::Time now = absl::Now();
  scrape.clear();
  bodies.assign(pages.size(), "");
  std::vector<HttpConnection> open;
  for (size_t i = 0; i < connections.size(); ++i) {
    const bool ready = polled[1 + socket.fds.size() + i].revents != 0;
    // The deadline comes first: a client that sends one byte now and then is always ready.
    const bool in_time = connections[i].deadline() > now;
    const bool keep = in_time && (!ready || connections[i].Continue(handler, now));
    if (keep) open.push_back(std::move(connections[i]));
  }
  connections = std::move(open);
}

// False: every connection is being answered.
bool HttpEndpoint::Impl::MakeRoom() {
  if (connections.size() < kMaxConnections) return true;
  const auto oldest = std::find_if(connections.begin(), connections.end(),
                                   [](const HttpConnection& c) { return c.reading(); });
  if (oldest == connections.end()) return false;
  connections.erase(oldest);
  return true;
}

void HttpEndpoint::Impl::Accept(int listener) {
  if (!MakeRoom()) return;
  FileDescriptor fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) {
    connections.emplace_back(std::move(fd), absl::Now());
  } else {
    // Without descriptors or memory, poll would report the same connection again at once.
    accept_paused = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
  }
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpEndpoint::~HttpEndpoint() = default;
int HttpEndpoint::port() const { return impl_->socket.port; }

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Listen(const std::string& address,
                                                                   const ServerMetrics& metrics,
                                                                   Readiness readiness,
                                                                   std::vector<HttpPage> pages) {
  absl::StatusOr<ListeningSocket> socket = ListenOn(address);
  if (!socket.ok()) return socket.status();
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return absl::UnavailableError("cannot serve HTTP: no file descriptor left");
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::make_unique<Impl>(
      *std::move(socket), std::move(wake), metrics, std::move(readiness), std::move(pages))));
}

}  // namespace attendant
