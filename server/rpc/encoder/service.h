// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "attendant/v1/encoder.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// attendant.v1.Encoder on gRPC's callback API: no call has a thread of its own. Thread-safe.
class EncoderService final : public v1::Encoder::CallbackService {
 public:
  // `dependencies` must outlive the service.
  explicit EncoderService(const EncodeDependencies& dependencies, const StreamLimits& limits = {})
      : dependencies_(dependencies), stream_limits_(limits) {}

  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const v1::EncodeRequest* request,
                                   v1::EncodeResponse* response) override;
  grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncodeStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;

  // Ends every stream with UNAVAILABLE once all requests that it has read are answered, and new
  // streams at once. Returns when the answers of all earlier calls are written, or at `deadline`.
  void Close(absl::Time deadline);

 private:
  using Stream = AnswerStream<v1::EncodeRequest, v1::EncodeStreamResponse>;

  // Starts one request, unary or of a stream.
  void Run(Method method, absl::Time deadline, std::shared_ptr<CallState> state,
           const v1::EncodeRequest& request, v1::EncodeResponse& response, UnaryCall::Done done);

  const EncodeDependencies& dependencies_;
  const StreamLimits stream_limits_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<Stream> streams_;
};

}  // namespace attendant
