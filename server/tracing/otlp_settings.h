// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/tracing/otlp_endpoint.h"
#include "server/tracing/sampler.h"
#include "server/tracing/span.h"

namespace attendant {

// The settings of tracing: the flag --otlp_endpoint, and OpenTelemetry's environment variables.
struct OtlpSettings {
  std::optional<OtlpEndpoint> endpoint = {};                      // none: no spans are made
  std::vector<std::pair<std::string, std::string>> headers = {};  // of each export
  std::string ca_file = {};  // PEM, for https; empty: the system's authorities
  bool gzip = true;
  absl::Duration timeout = absl::Seconds(10);  // of one export
  Sampler sampler = {};
  std::vector<SpanAttribute> resource = {};  // the service's name is among them
  size_t max_queued_spans = 8192;
  size_t max_batch_spans = 512;
  absl::Duration delay = absl::Seconds(5);  // longest time that a span waits for others
  // One for each variable that is ignored: a variable may be meant for other programs.
  std::vector<std::string> warnings = {};
};

// Of the variable with the headers. Collectors take few KiB of headers.
inline constexpr size_t kMaxOtlpHeaderBytes = size_t{16} << 10;

// The value of a variable; nothing where it is not set.
using EnvironmentRef = absl::FunctionRef<std::optional<std::string>(const char* name)>;

// `flag` goes before the variables of the endpoint; empty: they decide. REQUIRES: `flag` is empty
// or passes ParseOtlpCollector.
OtlpSettings ReadOtlpSettings(absl::string_view flag, absl::string_view version,
                              EnvironmentRef environment);

}  // namespace attendant
