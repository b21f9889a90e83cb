// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "attendant/v1/encoder.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// Limits of an EncodeRequest.
WireRules EncodeRules(const EncodeLimits& limits);

// Starts an Encode request of any transport. `response` is filled before the call's `done`.
// REQUIRES: the call's message is a TypedMessage<v1::EncodeRequest>.
void StartEncode(const EncodeDependencies& dependencies, RequestCall call,
                 v1::EncodeResponse& response);
// Adds all models but modules.
void DescribeEncoders(const ModelRegistry& models, v1::ListModelsResponse& response);

// attendant.v1.Encoder on gRPC's callback API: no call has a thread of its own. Thread-safe.
class EncoderService final : public RawService<v1::Encoder> {
 public:
  // `dependencies` must outlive the service.
  explicit EncoderService(const EncodeDependencies& dependencies, const StreamLimits& limits = {});

  // Ends every stream with UNAVAILABLE once all requests that it has read are answered, and new
  // streams at once. Returns when the answers of all earlier calls are written, or at `deadline`.
  void Close(absl::Time deadline);
  // As OpenCalls::CancelSlow, for SlowReaders.
  int CancelSlow(WriteClock::time_point since) {
    return calls_.CancelSlow(since) + streams_.CancelSlow(since);
  }

 private:
  using EncodeStream = AnswerStream<v1::EncodeStreamResponse>;

  EncodeStream* StartStream(IncomingCall& call);
  // Starts one request, unary or of a stream.
  void Run(Method method, absl::Time deadline, std::shared_ptr<CallState> state,
           grpc::ByteBuffer& request, v1::EncodeResponse& response, UnaryCall::Done done);

  const EncodeDependencies& dependencies_;
  const StreamLimits stream_limits_;
  const WireSchema schema_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<EncodeStream> streams_;
};

}  // namespace attendant
