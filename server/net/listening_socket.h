// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// A file descriptor that closes itself. -1: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }  // the caller closes it

 private:
  int fd_;
};

// The sockets of one address: a name may stand for several ("localhost": 127.0.0.1 and ::1).
struct ListeningSocket {
  std::vector<FileDescriptor> fds;  // TCP, listening, non-blocking; at least one
  int port = 0;                     // the bound one, the same for all
  bool loopback = false;            // only processes of this machine can connect
};

// INVALID_ARGUMENT when `address` is none that ListenOn can read.
absl::Status CheckAddress(const std::string& address);

// Listens on `address`: "127.0.0.1:8002", "[::1]:0", "localhost:8002"; "[::]:8002" serves IPv4 too.
// Of a name's addresses, those that this machine has are taken. INVALID_ARGUMENT when `address`
// cannot be read, UNAVAILABLE (with the system's reason) when nothing can be bound, or when one of
// the addresses is in use.
absl::StatusOr<ListeningSocket> ListenOn(const std::string& address);

// Listens on all `addresses`; messages call them `name`. If the first has port 0, all get one port
// that the system chooses and that is free on each.
absl::StatusOr<ListeningSocket> ListenOnAll(const addrinfo& addresses, const std::string& name);

}  // namespace attendant
