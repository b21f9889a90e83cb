// SPDX-License-Identifier: Apache-2.0
#include "server/app/http_server.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/core/status_macros.h"
#include "server/app/file_reload.h"
#include "server/http/attendant/routes.h"
#include "server/http/console/routes.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/cohere/rerank.h"
#include "server/http/doors/nim.h"
#include "server/http/doors/openai.h"
#include "server/http/doors/openapi.h"
#include "server/http/doors/tei/tei.h"
#include "server/http/doors/vllm/vllm.h"
#include "server/http/kserve/routes.h"
#include "server/limits/limits.h"
#include "server/net/descriptor_limit.h"
#include "server/requests/request_run.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

std::vector<HttpRoute> Routes(const ServerFlags& flags, const DoorDependencies& doors,
                              const AttendDependencies& attend) {
  std::vector<HttpRoute> routes;
  const auto add = [&routes](std::vector<HttpRoute> more) {
    std::move(more.begin(), more.end(), std::back_inserter(routes));
  };
  for (const auto make :
       {OpenAiRoutes, TeiRoutes, KServeRoutes, CohereRoutes, RerankRoutes, NimRoutes, VllmRoutes}) {
    add(make(doors));
  }
  add(AttendantRoutes(doors, flags.attention_service ? &attend : nullptr));
  if (flags.console) add(ConsoleRoutes(doors));
  return routes;
}

// The clients of a proxy on this machine come from loopback too. Keys say that not all of them are
// trusted, and pages ask for none.
bool ShowsConnections(const AccessFlags& flags) {
  if (flags.connections_page == ShowConnections::kAuto) return flags.api_keys.empty();
  return flags.connections_page == ShowConnections::kOn;
}

std::vector<HttpPage> Pages(const ServerFlags& flags, const DoorDependencies& doors,
                            const std::vector<HttpRoute>& routes) {
  std::vector<HttpPage> pages = {
      {.path = "/openapi.json",
       .content_type = "application/json",
       .body = [document = OpenApiDocument(routes, doors.version)] { return document; }}};
  if (!ShowsConnections(flags.access)) return pages;
  pages.push_back({.path = "/connections",
                   .content_type = "application/json",
                   .body =
                       [&requests = doors.encode.requests] {
                         std::vector<ConnectionReport> reports =
                             requests.gate.connections().Report();
                         requests.budgets.AddHeld(reports);
                         return ConnectionsPage(std::move(reports));
                       },
                   .only_on_loopback = flags.access.connections_page == ShowConnections::kAuto});
  return pages;
}

int64_t HttpRequests(const HttpLimits& limits) {
  const int64_t most = HttpRequestsWithin(RaiseDescriptorLimit(), HttpLimits::kPageConnections);
  if (most >= limits.max_connections) return limits.max_connections;
  spdlog::warn("at most {} HTTP requests in work (--max_http_connections): see ulimit -n", most);
  return most;
}

HttpLimits Limits(const ServerFlags& flags) {
  HttpLimits limits = flags.http;
  limits.max_connections = HttpRequests(flags.http);
  limits.max_request_bytes = flags.max_request_bytes;
  limits.max_write_s = flags.max_write_s;
  return limits;
}

// An operator who sets up TLS or keys may think that they protect both ports.
void WarnOfPlaintext(const ServerFlags& flags, bool loopback) {
  if (loopback || flags.http_tls) return;
  if (flags.tls_cert.empty() && flags.access.api_keys.empty()) return;
  spdlog::warn(
      "--http_listen {} reaches other machines, and without --http_tls=on what they send and get "
      "there is not encrypted{}{}",
      flags.http_listen, flags.access.api_keys.empty() ? "" : ", API keys included",
      flags.tls_client_ca.empty() ? "" : ", and they need no certificate of --tls_client_ca");
}

}  // namespace

absl::StatusOr<HttpServer> StartHttpServer(const ServerFlags& flags, const DoorDependencies& doors,
                                           const AttendDependencies& attend) {
  const RequestDependencies& requests = doors.encode.requests;
  HttpServer server;
  if (flags.http_tls) {
    ATTENDANT_ASSIGN_OR_RETURN(
        server.tls, TlsContext::Load({flags.tls_cert, flags.tls_key, flags.tls_client_ca}));
    server.tls_reload = ReloadTlsEvery(absl::Seconds(flags.tls_reload_s), ReloadedFile::kHttpTls,
                                       *server.tls, requests.metrics);
  }
  std::vector<HttpRoute> routes = Routes(flags, doors, attend);
  std::vector<HttpPage> pages = Pages(flags, doors, routes);
  absl::StatusOr<std::unique_ptr<HttpEndpoint>> endpoint = HttpEndpoint::Listen(
      flags.http_listen, requests.metrics,
      HttpProbes{.ready = [&models = requests.models] { return models.Ready(); },
                 .live = [&models = requests.models] { return models.Live(); }},
      std::move(pages),
      HttpDoors{.routes = std::move(routes),
                .requests = &requests,
                .limits = Limits(flags),
                .tls = server.tls.get()});
  if (!endpoint.ok()) {
    return absl::Status(endpoint.status().code(), absl::StrCat("--http_listen ", flags.http_listen,
                                                               ": ", endpoint.status().message()));
  }
  server.endpoint = *std::move(endpoint);
  WarnOfPlaintext(flags, server.endpoint->loopback());
  return server;
}

}  // namespace attendant
