// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/batching/request.h"

namespace attendant {

// Tokens of all its sequences, or of its operation.
int64_t CountTokens(const PendingRequest& request);

// OK when the request could run in an empty server; else INVALID_ARGUMENT with both numbers.
absl::Status CheckSize(const PendingRequest& request, const BatcherOptions& options);

// Time from `start` to `now`, never negative: the clock may be set back between them.
inline absl::Duration TimeSince(absl::Time start, absl::Time now) {
  return std::max(now - start, absl::ZeroDuration());
}

}  // namespace attendant
