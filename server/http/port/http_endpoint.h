// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/connection/http_connection.h"
#include "server/http/connection/tls_context.h"
#include "server/http/http_routes.h"
#include "server/limits/limits.h"
#include "server/net/listening_socket.h"
#include "server/requests/request_run.h"

namespace attendant {

// The protocols of the HTTP port, and the dependencies of their requests.
struct HttpDoors {
  std::vector<HttpRoute> routes = {};
  const RequestDependencies* requests = nullptr;  // null: there are no routes
  HttpLimits limits = {};
  HttpConnection::Times times = {};
  const TlsContext* tls = nullptr;  // null: without TLS, pages included
};

// The answers to probes: OK, or the reason why not. Called from the HTTP thread.
struct HttpProbes {
  using Probe = std::function<absl::Status()>;
  Probe ready;                                   // /readyz: it takes requests
  Probe live = [] { return absl::OkStatus(); };  // /healthz: else it helps to start it anew
};

// The HTTP port: /metrics, /healthz and /readyz (200, or 503 with the reason), further pages, and
// the routes of protocols. One thread, called "http", does all of HTTP; requests of routes run on
// their executors. Pages take GET and HEAD, and end their connection. On a loopback address,
// requests of foreign web pages get 403 (connection/foreign_page.h).
class HttpEndpoint {
 public:
  // Listens on `address`, "host:port", "[v6]:port"; port 0 picks a free one. INVALID_ARGUMENT for
  // an address that cannot be read, UNAVAILABLE when it cannot be bound. `metrics` and what `doors`
  // uses must outlive the endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Listen(const std::string& address,
                                                              ServerMetrics& metrics,
                                                              HttpProbes probes,
                                                              std::vector<HttpPage> pages = {},
                                                              HttpDoors doors = {});
  // Serves on a socket that listens already.
  static std::unique_ptr<HttpEndpoint> Listen(ListeningSocket socket, ServerMetrics& metrics,
                                              HttpProbes probes, std::vector<HttpPage> pages = {},
                                              HttpDoors doors = {});
  // Cancels the requests of routes, and waits until they have ended.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const;
  bool loopback() const;  // only this machine can connect

  // Makes each answer end its connection from now on, so that clients connect again, to another
  // server if they can.
  void EndConnections();

  // Makes routes answer UNAVAILABLE from now on; pages are still served. Returns when the answers
  // of all earlier requests are written, or at `deadline`, a steady time.
  void Close(absl::Time deadline);

 private:
  struct Impl;
  explicit HttpEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
