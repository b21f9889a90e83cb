// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The address of the OTLP collector that spans are sent to.
struct OtlpEndpoint {
  bool tls = false;
  std::string host;       // a name or an address, without brackets
  std::string port;       // a number
  std::string path = {};  // "/v1/traces"

  std::string authority() const;  // "host:port", "[::1]:port"
};

inline constexpr size_t kMaxOtlpUrlBytes = 4096;

// Parses a URL "http://host:port/path" or "https://...". The port (default 80, 443) and the path
// may be missing. INVALID_ARGUMENT, with the reason, for other URLs, and for one over
// kMaxOtlpUrlBytes.
absl::StatusOr<OtlpEndpoint> ParseOtlpEndpoint(absl::string_view url);

// Parses the URL of a collector, and adds "/v1/traces" to its path.
absl::StatusOr<OtlpEndpoint> ParseOtlpCollector(absl::string_view url);

}  // namespace attendant
