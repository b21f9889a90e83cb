// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

class ServerMetrics;

// A further page of the HTTP port.
struct HttpPage {
  std::string path;  // "/connections"
  std::string content_type;
  std::function<std::string()> body;  // called from the HTTP thread
  bool only_on_loopback = false;      // 404 where other machines can connect
};

// The HTTP port: /metrics, /healthz (200 while the process lives) and /readyz (200 when ready, else
// 503 with the reason). Only GET and HEAD; anything else is 404 or 405.
class HttpEndpoint {
 public:
  // OK when the server is ready, else the reason. Called from the HTTP thread.
  using Readiness = std::function<absl::Status()>;

  // Listens on `address`, "host:port", "[v6]:port"; port 0 picks a free one. INVALID_ARGUMENT for
  // an address that cannot be read, UNAVAILABLE when it cannot be bound. `metrics` must outlive the
  // endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Listen(const std::string& address,
                                                              const ServerMetrics& metrics,
                                                              Readiness readiness,
                                                              std::vector<HttpPage> pages = {});
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HttpEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
