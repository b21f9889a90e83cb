// SPDX-License-Identifier: Apache-2.0
#include "server/net/descriptor_limit.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/net/listening_socket.h"

namespace attendant {
namespace {

constexpr int64_t kUsualLimit = 1024;  // the soft limit of most systems

}  // namespace

int64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsualLimit;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());  // RLIM_INFINITY
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

absl::Status CheckDescriptorRoom(int count) {
  const int64_t limit = RaiseDescriptorLimit();
  std::vector<FileDescriptor> opened;
  while (static_cast<int>(opened.size()) < count) {
    FileDescriptor next(eventfd(0, EFD_CLOEXEC));
    if (!next.valid()) {
      const std::string reason = std::system_category().message(errno);
      return absl::ResourceExhaustedError(
          absl::StrCat("the system refuses another file descriptor: ", opened.size(), " of ", count,
                       " opened, the process may have ", limit, " (ulimit -n): ", reason));
    }
    opened.push_back(std::move(next));
  }
  return absl::OkStatus();
}

int64_t HttpConnectionsWithin(int64_t descriptors) { return descriptors / 4; }

int64_t HttpRequestsWithin(int64_t descriptors, int64_t page_connections) {
  return std::max<int64_t>(1, HttpConnectionsWithin(descriptors) - page_connections);
}

// Beside connections gRPC and its pollers hold some tens, a load a few for each weight file.
int64_t GrpcConnectionsWithin(int64_t descriptors, int64_t http_connections) {
  constexpr int64_t kOthers = 256;
  const int64_t http = std::min(http_connections, HttpConnectionsWithin(descriptors));
  return std::max(descriptors - kOthers - http, descriptors / 2);
}

}  // namespace attendant
