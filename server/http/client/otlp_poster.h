// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/tracing/export/span_transport.h"
#include "server/tracing/otlp_endpoint.h"

namespace attendant {

// The options of the HTTP client that sends spans to a collector.
struct OtlpPosterOptions {
  OtlpEndpoint endpoint;
  std::vector<std::pair<std::string, std::string>> headers = {};  // of each request
  std::string ca_file = {};  // PEM, for https; empty: the system's authorities
  bool gzip = true;
  std::string version = {};  // of the server, for the header user-agent
};

// Sends each request over a connection of its own. With https the collector must show a certificate
// of its host that one of the authorities has signed. INVALID_ARGUMENT or NOT_FOUND names the file
// of authorities.
absl::StatusOr<std::unique_ptr<SpanTransport>> MakeOtlpPoster(OtlpPosterOptions options);

}  // namespace attendant
