// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/http_endpoint.h"

#include <civetweb.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/server_metrics.h"

namespace attendant {
namespace {

// A connection holds a thread until it is answered; one that is slow to ask is dropped. Connections
// are not kept alive: an idle scraper would hold a thread. So a few threads are enough, and a few
// slow clients delay a probe by no more than the time limit.
constexpr char kThreads[] = "8";
constexpr char kRequestTimeoutMs[] = "3000";

struct Response {
  int code = 200;
  const char* reason = "OK";
  const char* content_type = "text/plain; charset=utf-8";
  const char* extra_header = "";
  std::string body;
};

bool IsHost(absl::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  return !host.empty() && std::all_of(host.begin(), host.end(), [bracketed](unsigned char c) {
    return bracketed ? absl::ascii_isxdigit(c) || c == ':' || c == '.'
                     : absl::ascii_isalnum(c) || c == '-' || c == '.';
  });
}

bool IsPort(absl::string_view port) {
  uint32_t number = 0;
  return !port.empty() && std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(port, &number) && number <= 65535;
}

// civetweb reads more into a listening address than a host and a port: lists, TLS and redirect
// suffixes.
absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon != absl::string_view::npos && IsHost(address.substr(0, colon)) &&
      IsPort(address.substr(colon + 1))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "HTTP address '", address, "': want HOST:PORT, e.g. 127.0.0.1:8002 or [::1]:8002"));
}

void Send(mg_connection* connection, const Response& response, bool with_body) {
  const std::string text = absl::StrCat(
      "HTTP/1.1 ", response.code, " ", response.reason, "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(),
      "\r\nCache-Control: no-store\r\nConnection: close\r\n", response.extra_header, "\r\n",
      with_body ? response.body : "");
  mg_write(connection, text.data(), text.size());
}

}  // namespace

struct HttpEndpoint::Impl {
  Impl(const ServerMetrics& server_metrics, Readiness is_ready)
      : metrics(server_metrics), readiness(std::move(is_ready)) {}
  ~Impl() {
    if (context != nullptr) mg_stop(context);
  }

  Response Answer(absl::string_view path) const;
  static int OnRequest(mg_connection* connection);
  static int OnLog(const mg_connection* connection, const char* message);

  const ServerMetrics& metrics;
  const Readiness readiness;
  mg_context* context = nullptr;
  int port = 0;

  absl::Mutex mutex;
  std::string last_log ABSL_GUARDED_BY(mutex);  // civetweb's only word on why it did not start
};

Response HttpEndpoint::Impl::Answer(absl::string_view path) const {
  if (path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.Scrape()};
  }
  if (path == "/healthz") return {.body = "ok\n"};
  if (path == "/readyz") {
    const absl::Status ready = readiness();
    if (ready.ok()) return {.body = "ready\n"};
    return {.code = 503,
            .reason = "Service Unavailable",
            .body = absl::StrCat("not ready: ", ready.message(), "\n")};
  }
  return {.code = 404,
          .reason = "Not Found",
          .body = "not found; there are /metrics, /healthz and /readyz\n"};
}

int HttpEndpoint::Impl::OnRequest(mg_connection* connection) {
  const Impl& impl = *static_cast<Impl*>(mg_get_user_context_data(connection));
  const mg_request_info& info = *mg_get_request_info(connection);
  const absl::string_view method = info.request_method;
  Response response;
  if (method == "GET" || method == "HEAD") {
    response = impl.Answer(absl::NullSafeStringView(info.local_uri));
  } else {
    response = {.code = 405,
                .reason = "Method Not Allowed",
                .extra_header = "Allow: GET, HEAD\r\n",
                .body = "only GET and HEAD are served\n"};
  }
  Send(connection, response, method != "HEAD");
  return response.code;
}

int HttpEndpoint::Impl::OnLog(const mg_connection* connection, const char* message) {
  Impl& impl = *static_cast<Impl*>(mg_get_user_context_data(connection));
  absl::MutexLock lock(&impl.mutex);
  impl.last_log = message;
  return 1;  // and not to civetweb's own log file
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpEndpoint::~HttpEndpoint() = default;
int HttpEndpoint::port() const { return impl_->port; }

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Listen(const std::string& address,
                                                                   const ServerMetrics& metrics,
                                                                   Readiness readiness) {
  if (absl::Status status = CheckAddress(address); !status.ok()) return status;
  auto impl = std::make_unique<Impl>(metrics, std::move(readiness));
  mg_callbacks callbacks{};
  callbacks.begin_request = Impl::OnRequest;
  callbacks.log_message = Impl::OnLog;
  const char* options[] = {
      "listening_ports", address.c_str(),     "num_threads", kThreads, "request_timeout_ms",
      kRequestTimeoutMs, "enable_keep_alive", "no",          nullptr};
  impl->context = mg_start(&callbacks, impl.get(), options);
  mg_server_port bound{};
  if (impl->context == nullptr || mg_get_server_ports(impl->context, 1, &bound) != 1) {
    absl::MutexLock lock(&impl->mutex);
    return absl::UnavailableError(
        absl::StrCat("cannot listen for HTTP on ", address, ": ", impl->last_log));
  }
  impl->port = bound.port;
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(impl)));
}

}  // namespace attendant
