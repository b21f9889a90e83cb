// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder/service.h"

#include <memory>
#include <utility>

#include "server/rpc/call/status_translation.h"
#include "server/rpc/call/stream_error.h"
#include "server/rpc/encoder/encoder_call.h"
#include "server/rpc/encoder/messages.h"

namespace attendant {
EncoderService::EncoderService(EncodePipeline& pipeline, Executor executor,
                               const StreamLimits& limits)
    : pipeline_(pipeline), executor_(std::move(executor)), stream_limits_(limits) {}

grpc::ServerUnaryReactor* EncoderService::Encode(grpc::CallbackServerContext* context,
                                                 const v1::EncodeRequest* request,
                                                 v1::EncodeResponse* response) {
  return UnaryCall::Start(calls_, *context,
                          [&](std::shared_ptr<Cancellation> cancellation, UnaryCall::Done done) {
                            const EncoderCall call{pipeline_, executor_, Method::kEncode,
                                                   Deadline(*context), std::move(cancellation)};
                            RunEncoderCall(call, *request, *response, std::move(done));
                          });
}

grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncoderService::EncodeStream(
    grpc::CallbackServerContext* context) {
  auto handler = [this, deadline = Deadline(*context)](Stream::Exchange& exchange,
                                                       absl::AnyInvocable<void()> answered) {
    const EncoderCall call{pipeline_, executor_, Method::kEncodeStream, deadline,
                           exchange.cancellation};
    RunEncoderCall(call, exchange.request, *exchange.answer.mutable_response(),
                   [&exchange, answered = std::move(answered)](const absl::Status& status) mutable {
                     FillStreamAnswer(exchange.request.id(), status, exchange.answer);
                     answered();
                   });
  };
  return Stream::Start(streams_, stream_limits_, std::move(handler));
}

grpc::ServerUnaryReactor* EncoderService::ListModels(grpc::CallbackServerContext* context,
                                                     const v1::ListModelsRequest* /*request*/,
                                                     v1::ListModelsResponse* response) {
  for (const ModelStatus& status : pipeline_.models().List()) {
    if (status.attention() != nullptr) continue;  // attendant.v1.Attention lists it
    EncodeModelInfo(status, *response->add_models());
  }
  return AnswerAtOnce(*context, absl::OkStatus());
}

void EncoderService::Close(absl::Time deadline) { CloseAndAwait(calls_, streams_, deadline); }

}  // namespace attendant
