// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// A status may carry a retry hint: how long a client should wait before it tries again. A refusal
// whose reason soon passes has one: a full queue, a full budget of memory, an idle model that did
// not load. It is a payload of whole milliseconds, at least 1, as gRPC's trailing metadata
// "grpc-retry-pushback-ms" needs it.
void SetRetryAfter(absl::Status& status, absl::Duration delay);

// The hint, or nothing when the status has none.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace attendant
