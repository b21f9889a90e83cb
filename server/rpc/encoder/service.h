// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.grpc.pb.h"
#include "server/batching/batcher.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/open_calls.h"
#include "server/rpc/call/unary_call.h"

namespace attendant {

// attendant.v1.Encoder on gRPC's callback API: no call has a thread of its own. Thread-safe.
class EncoderService final : public v1::Encoder::CallbackService {
 public:
  // `pipeline` must outlive the service. Large requests are read on `executor`.
  EncoderService(EncodePipeline& pipeline, Executor executor, const StreamLimits& limits = {});

  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const v1::EncodeRequest* request,
                                   v1::EncodeResponse* response) override;
  grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncodeStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;

  // Ends every stream with UNAVAILABLE once all that it has read is answered, new ones at once. The
  // answers of all calls that began before have been written when it returns, or `deadline` is
  // over.
  void Close(absl::Time deadline);

 private:
  using Stream = AnswerStream<v1::EncodeRequest, v1::EncodeStreamResponse>;

  EncodePipeline& pipeline_;
  const Executor executor_;
  const StreamLimits stream_limits_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<Stream> streams_;
};

}  // namespace attendant
