// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "attendant/v1/attention.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/models/model_options.h"
#include "server/requests/request_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
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

  // As EncoderService::Close.
  void Close(absl::Time deadline);
  // As OpenCalls::CancelSlow, for SlowReaders.
  int CancelSlow(WriteClock::time_point since) {
    return calls_.CancelSlow(since) + streams_.CancelSlow(since);
  }

 private:
  using AttendStream = AnswerStream<v1::AttendStreamResponse>;

  AttendStream* StartStream(IncomingCall& call);
  // Starts one request, unary or of a stream.
  void Run(Method method, absl::Time deadline, std::shared_ptr<CallState> state,
           grpc::ByteBuffer& request, v1::AttendResponse& response, UnaryCall::Done done);

  const AttendDependencies dependencies_;
  const StreamLimits stream_limits_;
  const WireSchema schema_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<AttendStream> streams_;
};

}  // namespace attendant
