// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// The same code; the message cut to what fits a gRPC trailer with room to spare.
grpc::Status ToGrpcStatus(const absl::Status& status);

// A status with a RetryAfter tells well-behaved clients when to come back (grpc-retry-pushback-ms,
// which gRPC's own retry policy honours). Before the call's Finish.
void AddRetryHint(const absl::Status& status, grpc::CallbackServerContext& context);

// The call's deadline; InfiniteFuture without one.
absl::Time Deadline(const grpc::CallbackServerContext& context);

}  // namespace attendant
