// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace attendant {

// Raises this process's limit of open file descriptors as far as the system allows without a
// privilege (the soft limit is often 1024, the hard one half a million). Returns the limit in
// force, or 1024 where the system does not tell.
int64_t RaiseDescriptorLimit();

// RESOURCE_EXHAUSTED unless `count` more file descriptors can be had, after RaiseDescriptorLimit.
// Opens them, and closes them.
absl::Status CheckDescriptorRoom(int count);

// The shares of a limit on file descriptors. HttpConnectionsWithin: connections of the HTTP port.
// GrpcConnectionsWithin: of the gRPC port, beside `http_connections` of the HTTP port. The rest is
// for models, ports, logs and libraries.
int64_t HttpConnectionsWithin(int64_t descriptors);
// The connections of the HTTP port that may have a request in work, beside `page_connections`.
int64_t HttpRequestsWithin(int64_t descriptors, int64_t page_connections);
int64_t GrpcConnectionsWithin(int64_t descriptors, int64_t http_connections);

}  // namespace attendant
