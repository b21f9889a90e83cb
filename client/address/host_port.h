// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

struct HostPort {
  std::string host;  // a name or an address, without brackets
  std::string port;  // a number from 0 to 65535, as it is written
};

// The options of ParseHostPort. The defaults are for an address to connect to.
struct HostPortOptions {
  bool zone = true;                     // of an IPv6 address: "[fe80::1%eth0]:80"
  bool port_zero = false;               // the system chooses the port
  absl::string_view default_port = {};  // of an address without a port; empty: it must have one
};

// The parts of "host:80", "127.0.0.1:80" or "[::1]:80": IPv6 addresses have brackets, other hosts
// have none. Null for all other texts, also for a host with characters that no name has.
std::optional<HostPort> ParseHostPort(absl::string_view text, const HostPortOptions& options = {});

}  // namespace attendant
