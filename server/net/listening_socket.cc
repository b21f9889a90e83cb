// SPDX-License-Identifier: Apache-2.0
#include "server/net/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/address/host_port.h"

namespace attendant {
namespace {

absl::StatusOr<HostPort> Parse(absl::string_view address) {
  std::optional<HostPort> parsed = ParseHostPort(address, {.port_zero = true});
  if (parsed.has_value()) return *std::move(parsed);
  return absl::InvalidArgumentError(
      absl::StrCat("address '", address, "': want HOST:PORT, as 127.0.0.1:8000 or [::1]:8000"));
}

absl::Status Unavailable(const std::string& address, const std::string& reason) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", reason));
}

void SetPort(int port, sockaddr_storage& address) {
  const auto wire = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = wire;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = wire;
  }
}

bool IsLoopback(const addrinfo& info) {
  if (info.ai_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(info.ai_addr)->sin6_addr);
  }
  const in_addr v4 = reinterpret_cast<const sockaddr_in*>(info.ai_addr)->sin_addr;
  return ntohl(v4.s_addr) >> 24 == 127;
}

// Bound to `port`, or to that of `info` when `port` is 0. An invalid descriptor with errno set when
// that fails.
FileDescriptor Bind(const addrinfo& info, int port) {
  sockaddr_storage address{};
  std::memcpy(&address, info.ai_addr, info.ai_addrlen);
  if (port != 0) SetPort(port, address);
  FileDescriptor fd(socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  const bool bound =
      fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), info.ai_addrlen) == 0 &&
      listen(fd.get(), SOMAXCONN) == 0;
  if (bound) return fd;
  const int reason = errno;  // closing may change it
  fd = FileDescriptor();
  errno = reason;
  return FileDescriptor();
}

int PortOf(const sockaddr& address) {
  return ntohs(address.sa_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int PortOf(const FileDescriptor& fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto& any = reinterpret_cast<sockaddr&>(address);
  return getsockname(fd.get(), &any, &size) == 0 ? PortOf(any) : 0;
}

// How many ports to ask the system for: it chooses one that the first address has free, and
// another program may hold it on a later one.
constexpr int kPortAttempts = 16;

// `reason`: the errno of the addresses that could not be bound, EADDRINUSE before others.
ListeningSocket BindAll(const addrinfo& addresses, int& reason) {
  ListeningSocket listening{.fds = {}, .port = 0, .loopback = true};
  reason = 0;
  for (const addrinfo* info = &addresses; info != nullptr; info = info->ai_next) {
    FileDescriptor fd = Bind(*info, listening.port);
    if (fd.valid()) {
      listening.port = PortOf(fd);
      listening.loopback = listening.loopback && IsLoopback(*info);
      listening.fds.push_back(std::move(fd));
    } else if (reason != EADDRINUSE) {
      reason = errno;
    }
  }
  return listening;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::Status CheckAddress(const std::string& address) { return Parse(address).status(); }

absl::StatusOr<ListeningSocket> ListenOn(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = Parse(address);
  if (!parsed.ok()) return parsed.status();
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_protocol = IPPROTO_TCP;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parsed->host.c_str(), parsed->port.c_str(), &hints, &found);
  if (error != 0) return Unavailable(address, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  return ListenOnAll(*found, address);
}

absl::StatusOr<ListeningSocket> ListenOnAll(const addrinfo& addresses, const std::string& name) {
  int reason = 0;
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    ListeningSocket listening = BindAll(addresses, reason);
    // An address that this machine lacks (::1 without IPv6) may be left out, one in use may not:
    // half of the clients would reach another program.
    if (!listening.fds.empty() && reason != EADDRINUSE) return listening;
    if (reason != EADDRINUSE || PortOf(*addresses.ai_addr) != 0) break;
  }
  return Unavailable(name, std::system_category().message(reason));
}

}  // namespace attendant
