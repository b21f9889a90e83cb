// SPDX-License-Identifier: Apache-2.0
#include "client/address/host_port.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace attendant {
namespace {

bool IsPort(absl::string_view port, const HostPortOptions& options) {
  uint32_t number = 0;
  return std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(port, &number) && number <= 65535 && (number > 0 || options.port_zero);
}

// A name, an IPv4 address, or with colons an IPv6 address, which may have a zone.
bool IsHost(absl::string_view host, bool zone) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [zone](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' ||
           (c == '%' && zone);
  });
}

}  // namespace

std::optional<HostPort> ParseHostPort(absl::string_view text, const HostPortOptions& options) {
  absl::string_view host = text;
  absl::string_view port = options.default_port;
  const size_t colon = text.rfind(':');
  // A colon in brackets is one of the address.
  if (colon != absl::string_view::npos && !absl::StrContains(text.substr(colon), ']')) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!IsHost(host, bracketed && options.zone) || !IsPort(port, options)) return std::nullopt;
  if (bracketed != absl::StrContains(host, ':')) return std::nullopt;
  return HostPort{.host = std::string(host), .port = std::string(port)};
}

}  // namespace attendant
