// SPDX-License-Identifier: Apache-2.0
#include "server/http/console/routes.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/attendant/connect_error.h"
#include "server/http/console/console_files.h"
#include "server/http/console/live.h"
#include "server/http/gzip.h"

namespace attendant {
namespace {

constexpr char kPage[] = "index.html";

// Nothing from elsewhere, nothing inline; no other page may frame this one.
constexpr std::pair<const char*, const char*> kPageHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
};

absl::string_view ContentType(absl::string_view name) {
  if (absl::EndsWith(name, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

// A file in both forms.
struct Asset {
  HttpResponse plain;
  HttpResponse gzip;
};

std::shared_ptr<const Asset> MakeAsset(const EmbeddedFile& file) {
  HttpResponse plain{.content_type = std::string(ContentType(file.name)),
                     .body = std::string(file.bytes)};
  for (const auto& [name, value] : kPageHeaders) plain.headers.emplace_back(name, value);
  plain.headers.emplace_back("Vary", "Accept-Encoding");
  HttpResponse gzip = plain;
  gzip.body = Gzip(plain.body);
  gzip.headers.emplace_back("Content-Encoding", "gzip");
  return std::make_shared<const Asset>(Asset{std::move(plain), std::move(gzip)});
}

void AddFile(const DoorDependencies& dependencies, const EmbeddedFile& file,
             std::vector<HttpRoute>& routes) {
  const std::string path = file.name == kPage ? "/" : absl::StrCat("/console/", file.name);
  const std::shared_ptr<const Asset> asset = MakeAsset(file);
  routes.push_back(MakeHttpRoute("GET", path, MethodGroup::kOpen, ConnectError,
                                 [&dependencies, asset](std::unique_ptr<HttpExchange> exchange) {
                                   exchange->response =
                                       TakesGzip(exchange->header) ? asset->gzip : asset->plain;
                                   EndSmall(dependencies, std::move(exchange), absl::OkStatus());
                                 },
                                 {}));
}

HttpRoute LiveRoute(const DoorDependencies& dependencies) {
  HttpRoute route = MakeHttpRoute(
      "GET", "/console/live", MethodGroup::kRead, ConnectError,
      Small(dependencies,
            [&dependencies](const HttpExchange& /*request*/, std::string& json) {
              json = LiveJson(dependencies.encode.requests.metrics, dependencies.version);
              return absl::OkStatus();
            }),
      {"The counters of all models, for charts", "", LiveSchema()});
  route.call.routine = true;
  return route;
}

}  // namespace

std::vector<HttpRoute> ConsoleRoutes(const DoorDependencies& dependencies) {
  std::vector<HttpRoute> routes = {LiveRoute(dependencies)};
  for (const EmbeddedFile& file : ConsoleFiles()) AddFile(dependencies, file, routes);
  return routes;
}

}  // namespace attendant
