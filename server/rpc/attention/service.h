// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/attention.grpc.pb.h"
#include "server/batching/batcher.h"
#include "server/rpc/attention/attend_call.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/open_calls.h"
#include "server/rpc/call/unary_call.h"

namespace attendant {

// attendant.v1.Attention on gRPC's callback API: no call has a thread of its own. Thread-safe.
class AttentionService final : public v1::Attention::CallbackService {
 public:
  // Large requests are read on `executor`.
  AttentionService(const AttentionServing& serving, Executor executor,
                   const StreamLimits& limits = {});

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const v1::AttendRequest* request,
                                   v1::AttendResponse* response) override;
  grpc::ServerBidiReactor<v1::AttendRequest, v1::AttendStreamResponse>* AttendStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListAttention(grpc::CallbackServerContext* context,
                                          const v1::ListAttentionRequest* request,
                                          v1::ListAttentionResponse* response) override;

  // As EncoderService's.
  void Close(absl::Time deadline);

 private:
  using Stream = AnswerStream<v1::AttendRequest, v1::AttendStreamResponse>;

  const AttentionServing serving_;
  const Executor executor_;
  const StreamLimits stream_limits_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<Stream> streams_;
};

}  // namespace attendant
