// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"

namespace attendant::client {

// The encryption of a connection.
struct TlsOptions {
  // Encrypt, and check the server's certificate against the authorities of the system.
  bool enabled = false;
  // PEM files of 16 MiB at most. Each one given also enables TLS. A certificate and its key come
  // together.
  std::string ca_file = {};    // authorities to check the server with, instead of the system's
  std::string cert_file = {};  // this client's certificate
  std::string key_file = {};   // the key of cert_file

  bool encrypts() const {
    return enabled || !ca_file.empty() || !cert_file.empty() || !key_file.empty();
  }
};

// The options of a client, for all of its calls.
struct ConnectOptions {
  std::string target = "127.0.0.1:8001";  // HOST:PORT, or any gRPC target
  TlsOptions tls = {};
  // A file with an API key of 4 KiB at most, sent with each call; empty: none. Without TLS it
  // travels unencrypted.
  std::string api_key_file = {};
  // The id of a W3C trace, 32 lower-case hexadecimal digits: each call is a span of it, and has a
  // request id. Empty: none.
  std::string trace_id = {};
  absl::Duration timeout = absl::Seconds(30);  // of each call, above 0; infinite is allowed
  // The most attempts of a call, from 1 to 5. A call is sent again while the server's queue is
  // full, or the server cannot be reached, is loading or is draining. The time between tries starts
  // at 100 ms and doubles. Where the server says when to come back, gRPC waits for that long
  // instead. Requests above 4 MiB are tried once.
  int max_attempts = 1;
  // Spread calls over all addresses of `target`, as of dns:///NAME:8001 or ipv4:A:8001,B:8001,
  // instead of sending all to the first one that answers.
  bool round_robin = false;
};

}  // namespace attendant::client
