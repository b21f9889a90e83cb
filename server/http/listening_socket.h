// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

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

 private:
  int fd_;
};

struct ListeningSocket {
  FileDescriptor fd;  // TCP, listening, non-blocking
  int port = 0;       // the bound one
};

// Listens on `address`: "127.0.0.1:8002", "[::1]:0", "localhost:8002"; "[::]:8002" serves IPv4 too.
// INVALID_ARGUMENT when it cannot be read, UNAVAILABLE (with the system's reason) when it cannot be
// bound.
absl::StatusOr<ListeningSocket> ListenOn(const std::string& address);

}  // namespace attendant
