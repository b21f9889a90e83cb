// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "server/batching/batcher.h"
#include "server/batching/request.h"

namespace attendant {

// OK when the request could run in an empty server; else INVALID_ARGUMENT with both numbers.
absl::Status CheckSize(const PendingRequest& request, const BatcherOptions& options);

}  // namespace attendant
