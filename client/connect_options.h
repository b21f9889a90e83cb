// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"

namespace attendant::client {

struct TlsOptions {
  // Encrypt, and check the server's certificate against the system's authorities.
  bool enabled = false;
  // PEM files. Each one given also enables TLS.
  std::string ca_file = {};    // authorities to check the server with, instead of the system's
  std::string cert_file = {};  // this client's certificate, with its key
  std::string key_file = {};
};

struct ConnectOptions {
  std::string target = "127.0.0.1:8001";  // host:port, or any gRPC target
  TlsOptions tls = {};
  absl::Duration timeout = absl::Seconds(30);  // of each call
  // Times that a call is tried while the server answers that its queue is full (1 to 5).
  int max_attempts = 1;
};

}  // namespace attendant::client
