// SPDX-License-Identifier: Apache-2.0
#include "server/net/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace attendant {

int64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());  // RLIM_INFINITY
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

// The HTTP port holds up to 128 descriptors, gRPC and its pollers some tens, a load a few for each
// weight file.
int64_t ConnectionsWithin(int64_t descriptors) {
  constexpr int64_t kOthers = 256;
  return std::max(descriptors - kOthers, descriptors / 2);
}

}  // namespace attendant
