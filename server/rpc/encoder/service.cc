// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder/service.h"

#include <memory>
#include <utility>

#include "kernels/core/status_macros.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/encoder/messages.h"
#include "server/rpc/wire/messages.h"

namespace attendant {
namespace {

class EncoderRun final : public EncodeRun {
 public:
  EncoderRun(const EncodeDependencies& dependencies, RequestCall call,
             const v1::EncodeRequest& request, v1::EncodeResponse& response)
      : EncodeRun(dependencies, std::move(call)), request_(request), response_(response) {}

 private:
  absl::StatusOr<EncodeInput> FromMessage() override {
    ATTENDANT_ASSIGN_OR_RETURN(format_, FromProto("outputs.dtype", request_.outputs().dtype()));
    return FromProto(request_, limits());
  }

  void ToMessage(EncodeOutput& output) override {
    ToProto(output, request_, format_, response_);
    ToProto(times(), *response_.mutable_timings());
  }

  const v1::EncodeRequest& request_;
  v1::EncodeResponse& response_;
  NumberFormat format_ = NumberFormat::kF32;
};

}  // namespace

void EncoderService::Run(Method method, absl::Time deadline, std::shared_ptr<CallState> state,
                         const v1::EncodeRequest& request, v1::EncodeResponse& response,
                         UnaryCall::Done done) {
  RequestCall call{.method = method,
                   .model = request.model(),
                   .message_bytes = request.ByteSizeLong(),
                   .deadline = deadline,
                   .state = std::move(state),
                   .done = std::move(done)};
  RequestRun::Start(
      std::make_unique<EncoderRun>(dependencies_, std::move(call), request, response));
}

grpc::ServerUnaryReactor* EncoderService::Encode(grpc::CallbackServerContext* context,
                                                 const v1::EncodeRequest* request,
                                                 v1::EncodeResponse* response) {
  return UnaryCall::Start(calls_, *context,
                          [&](std::shared_ptr<CallState> state, UnaryCall::Done done) {
                            Run(Method::kEncode, Deadline(*context), std::move(state), *request,
                                *response, std::move(done));
                          });
}

grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncoderService::EncodeStream(
    grpc::CallbackServerContext* context) {
  auto handler = [this, deadline = Deadline(*context)](Stream::Exchange& exchange,
                                                       Stream::Done done) {
    Run(Method::kEncodeStream, deadline, exchange.state, exchange.request,
        *exchange.answer.mutable_response(), std::move(done));
  };
  return Stream::Start(streams_, stream_limits_, std::move(handler), FinishStreamAnswer);
}

grpc::ServerUnaryReactor* EncoderService::ListModels(grpc::CallbackServerContext* context,
                                                     const v1::ListModelsRequest* /*request*/,
                                                     v1::ListModelsResponse* response) {
  for (const ModelStatus& status : dependencies_.requests.models.List()) {
    if (status.attention() != nullptr) continue;  // attendant.v1.Attention lists it
    ToProto(status, *response->add_models());
  }
  return AnswerAtOnce(*context, absl::OkStatus());
}

void EncoderService::Close(absl::Time deadline) { CloseAndAwait(calls_, streams_, deadline); }

}  // namespace attendant
