// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attendant/v1/attention.pb.h"
#include "server/limits/limits.h"
#include "server/requests/request_run.h"

namespace attendant {

// The dependencies of attention requests. They outlive all requests.
struct AttendDependencies {
  const RequestDependencies& requests;
  AttentionLimits limits;
  int64_t max_request_bytes = 0;   // gRPC's own limit, for ListAttention
  int64_t max_response_bytes = 0;  // tensors of one answer, as f32
};

// Starts an Attend request of any transport. `response` is filled before the call's `done`.
// REQUIRES: the call's message is a TypedMessage<v1::AttendRequest>.
void StartAttend(const AttendDependencies& dependencies, RequestCall call,
                 v1::AttendResponse& response);
void DescribeAttention(const AttendDependencies& dependencies, v1::ListAttentionResponse& response);

}  // namespace attendant
