// SPDX-License-Identifier: Apache-2.0
#include "server/http/port/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

std::string NameOf4(const void* address, in_port_t port) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, address, text, sizeof(text));
  return absl::StrCat("ipv4:", text, ":", ntohs(port));
}

}  // namespace

std::string PeerName(const sockaddr_storage& peer) {
  if (peer.ss_family != AF_INET6) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return NameOf4(&v4.sin_addr, v4.sin_port);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return NameOf4(&v6.sin6_addr.s6_addr[12], v6.sin6_port);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return absl::StrCat("ipv6:[", text, "]:", ntohs(v6.sin6_port));
}

}  // namespace attendant
