// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attendant/v1/attention.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/models/model_options.h"
#include "server/requests/request_run.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/call/request_method.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// The dependencies of attention requests. They outlive all requests.
struct AttendDependencies {
  const RequestDependencies& requests;
  AttentionLimits limits;
  int64_t max_request_bytes = 0;   // gRPC's own limit, for ListAttention
  int64_t max_response_bytes = 0;  // tensors of one answer, as f32
};

// Limits of an AttendRequest.
WireRules AttendRules();

// Starts an Attend request of any transport. `response` is filled before the call's `done`.
// REQUIRES: the call's message is a TypedMessage<v1::AttendRequest>.
void StartAttend(const AttendDependencies& dependencies, RequestCall call,
                 v1::AttendResponse& response);
void DescribeAttention(const AttendDependencies& dependencies, v1::ListAttentionResponse& response);

// attendant.v1.Attention on gRPC's callback API: no call has a thread of its own. Thread-safe.
class AttentionService final : public RawService<v1::Attention> {
 public:
  explicit AttentionService(const AttendDependencies& dependencies,
                            const StreamLimits& limits = {});

 private:
  const AttendDependencies dependencies_;
  RequestMethod<v1::AttendRequest, v1::AttendResponse, v1::AttendStreamResponse> attend_;
};

}  // namespace attendant
