// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/otlp_endpoint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr absl::string_view kHttp = "http://";
constexpr absl::string_view kHttps = "https://";

// What stands before an @ may be a password: it is not shown.
absl::Status NoUrl(absl::string_view url) {
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrContains(url, '@') ? "a URL with an @" : Quote(url),
                   " is not http://HOST:PORT or https://HOST:PORT"));
}

bool IsPortNumber(absl::string_view port) {
  uint32_t number = 0;
  return std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(port, &number) && number > 0 && number <= 65535;
}

// With colons it is an IPv6 address.
bool IsHostText(absl::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

// The host ends at the last colon behind its brackets.
bool TakeAuthority(absl::string_view authority, OtlpEndpoint& endpoint) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  absl::string_view host = authority;
  if (colon != absl::string_view::npos && (bracket == absl::string_view::npos || colon > bracket)) {
    host = authority.substr(0, colon);
    endpoint.port = std::string(authority.substr(colon + 1));
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  endpoint.host = std::string(host);
  return IsHostText(host) && IsPortNumber(endpoint.port) &&
         bracketed == absl::StrContains(host, ":");
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
  endpoint.port = endpoint.tls ? "443" : "80";
  endpoint.path = end == rest.size() ? "/" : std::string(rest.substr(end));
  if (!TakeAuthority(rest.substr(0, end), endpoint) || !IsPath(endpoint.path)) return NoUrl(url);
  return endpoint;
}

absl::StatusOr<OtlpEndpoint> ParseOtlpCollector(absl::string_view url) {
  ATTENDANT_ASSIGN_OR_RETURN(OtlpEndpoint endpoint, ParseOtlpEndpoint(url));
  endpoint.path = absl::StrCat(absl::StripSuffix(endpoint.path, "/"), "/v1/traces");
  return endpoint;
}

}  // namespace attendant
