// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/attention.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/protocols/attention/attend_run.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/call/request_method.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// Limits of an AttendRequest.
WireRules AttendRules();

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
