// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder_service.h"

#include <memory>
#include <utility>

#include "server/rpc/encoder_call.h"
#include "server/rpc/encoder_messages.h"
#include "server/rpc/encoder_stream.h"
#include "server/rpc/status_translation.h"

namespace attendant {
namespace {

// One Encode call. Owns itself: gone after OnDone.
class EncodeReactor : public grpc::ServerUnaryReactor {
 public:
  EncodeReactor(EncodePipeline& pipeline, const Executor& executor,
                grpc::CallbackServerContext& context, const v1::EncodeRequest& request,
                v1::EncodeResponse& response)
      : cancellation_(std::make_shared<Cancellation>(pipeline)) {
    const EncoderCall call{pipeline, executor, Method::kEncode, Deadline(context), cancellation_};
    RunEncoderCall(call, request, response, [this, &context](const absl::Status& status) {
      AddRetryHint(status, context);
      Finish(ToGrpcStatus(status));
    });
  }

  void OnCancel() override { cancellation_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<Cancellation> cancellation_;
};

}  // namespace

EncoderService::EncoderService(EncodePipeline& pipeline, Executor executor,
                               const StreamLimits& limits)
    : pipeline_(pipeline), executor_(std::move(executor)), stream_limits_(limits) {}

grpc::ServerUnaryReactor* EncoderService::Encode(grpc::CallbackServerContext* context,
                                                 const v1::EncodeRequest* request,
                                                 v1::EncodeResponse* response) {
  return new EncodeReactor(pipeline_, executor_, *context, *request, *response);
}

grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncoderService::EncodeStream(
    grpc::CallbackServerContext* context) {
  const std::shared_ptr<EncoderStream> stream =
      EncoderStream::Start(pipeline_, executor_, stream_limits_, Deadline(*context),
                           [this](EncoderStream* ended) { RemoveStream(ended); });
  absl::MutexLock lock(&mutex_);
  if (closing_) {
    stream->Close();
  } else {
    streams_.insert(stream.get());
  }
  return stream.get();
}

grpc::ServerUnaryReactor* EncoderService::ListModels(grpc::CallbackServerContext* context,
                                                     const v1::ListModelsRequest* /*request*/,
                                                     v1::ListModelsResponse* response) {
  for (const ModelStatus& status : pipeline_.models().List()) {
    EncodeModelInfo(status, *response->add_models());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

void EncoderService::CloseStreams() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
  for (EncoderStream* stream : streams_) stream->Close();
}

void EncoderService::RemoveStream(EncoderStream* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

}  // namespace attendant
