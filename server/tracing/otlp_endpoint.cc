// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/otlp_endpoint.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/address/host_port.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr absl::string_view kHttp = "http://";
constexpr absl::string_view kHttps = "https://";

// The part before an @ may be a password: it is not shown.
absl::Status NoUrl(absl::string_view url) {
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrContains(url, '@') ? "a URL with an @" : Quote(url),
                   " is not http://HOST:PORT or https://HOST:PORT"));
}

bool IsPath(absl::string_view path) {
  return std::all_of(path.begin(), path.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c) && c != '#'; });
}

}  // namespace

std::string OtlpEndpoint::authority() const {
  const bool v6 = absl::StrContains(host, ":");
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

absl::StatusOr<OtlpEndpoint> ParseOtlpEndpoint(absl::string_view url) {
  if (url.size() > kMaxOtlpUrlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the URL has ", url.size(), " bytes, the limit is ", kMaxOtlpUrlBytes));
  }
  OtlpEndpoint endpoint;
  endpoint.tls = absl::StartsWithIgnoreCase(url, kHttps);
  if (!endpoint.tls && !absl::StartsWithIgnoreCase(url, kHttp)) return NoUrl(url);
  const absl::string_view rest = url.substr((endpoint.tls ? kHttps : kHttp).size());
  const size_t end = std::min(rest.find('/'), rest.size());
  std::optional<HostPort> place = ParseHostPort(
      rest.substr(0, end), {.zone = false, .default_port = endpoint.tls ? "443" : "80"});
  endpoint.path = end == rest.size() ? "/" : std::string(rest.substr(end));
  if (!place.has_value() || !IsPath(endpoint.path)) return NoUrl(url);
  endpoint.host = std::move(place->host);
  endpoint.port = std::move(place->port);
  return endpoint;
}

absl::StatusOr<OtlpEndpoint> ParseOtlpCollector(absl::string_view url) {
  ATTENDANT_ASSIGN_OR_RETURN(OtlpEndpoint endpoint, ParseOtlpEndpoint(url));
  endpoint.path = absl::StrCat(absl::StripSuffix(endpoint.path, "/"), "/v1/traces");
  return endpoint;
}

}  // namespace attendant
