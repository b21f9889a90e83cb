// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>

namespace attendant {

// A TCP peer as gRPC names it: "ipv4:127.0.0.1:40312", "ipv6:[::1]:40312". IPv4 that came over
// IPv6 is IPv4.
std::string PeerName(const sockaddr_storage& peer);

}  // namespace attendant
