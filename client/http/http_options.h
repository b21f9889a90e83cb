// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant::client {

struct HttpClientOptions {
  std::string address;  // "host:8002", "[::1]:8002"
  std::string path;     // of every request
  std::string method = "POST";
  // Headers of every request. Of two with one name the last one counts. The client sets Host,
  // Connection and Content-Length itself.
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool keep_alive = true;
  uint64_t max_answer_bytes = uint64_t{1} << 30;  // of a body
  bool tls = false;
  std::optional<std::string> authorities = {};  // PEM, for TLS; none: the system's
};

// The head of each request, up to where its own headers go: "POST ... \r\n".
std::string HttpHead(const HttpClientOptions& options);

}  // namespace attendant::client
