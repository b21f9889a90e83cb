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

namespace attendant {

// What attention requests use. It outlives all of them.
struct AttendDependencies {
  const RequestDependencies& requests;
  AttentionLimits limits;
  int64_t max_request_bytes = 0;   // gRPC's own limit, for ListAttention
  int64_t max_response_bytes = 0;  // tensors of one answer, as f32
};

// attendant.v1.Attention on gRPC's callback API: no call has a thread of its own. Thread-safe.
class AttentionService final : public v1::Attention::CallbackService {
 public:
  explicit AttentionService(const AttendDependencies& dependencies, const StreamLimits& limits = {})
      : dependencies_(dependencies), stream_limits_(limits) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const v1::AttendRequest* request,
                                   v1::AttendResponse* response) override;
  grpc::ServerBidiReactor<v1::AttendRequest, v1::AttendStreamResponse>* AttendStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListAttention(grpc::CallbackServerContext* context,
                                          const v1::ListAttentionRequest* request,
                                          v1::ListAttentionResponse* response) override;

  // As EncoderService::Close.
  void Close(absl::Time deadline);

 private:
  using Stream = AnswerStream<v1::AttendRequest, v1::AttendStreamResponse>;

  // Starts one request, unary or of a stream.
  void Run(Method method, absl::Time deadline, std::shared_ptr<CallState> state,
           const v1::AttendRequest& request, v1::AttendResponse& response, UnaryCall::Done done);

  const AttendDependencies dependencies_;
  const StreamLimits stream_limits_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<Stream> streams_;
};

}  // namespace attendant
