// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "attendant/v1/attention.grpc.pb.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "client/attention_wire.h"
#include "client/channel.h"
#include "client/ordered_encoder.h"
#include "client/wire.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using HealthService = grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using EncodeDone = absl::AnyInvocable<void(absl::StatusOr<EncodeResult>)>;

ServingStatus ToServingStatus(HealthCheckResponse::ServingStatus status) {
  if (status == HealthCheckResponse::SERVING) return ServingStatus::kServing;
  if (status == HealthCheckResponse::NOT_SERVING) return ServingStatus::kNotServing;
  return ServingStatus::kUnknown;
}

struct AsyncEncode {
  AsyncEncode(v1::EncodeRequest encode_request, EncodeDone encode_done)
      : request(std::move(encode_request)), done(std::move(encode_done)) {}

  grpc::ClientContext context;
  const v1::EncodeRequest request;
  v1::EncodeResponse response;
  EncodeDone done;

  absl::StatusOr<EncodeResult> Result(const grpc::Status& status) const {
    if (!status.ok()) return ToAbslStatus(status);
    ATTENDANT_ASSIGN_OR_RETURN(EncodeResult result, FromProto(response));
    const int asked = request.sequences().sequences_size();
    if (response.sequences_size() == asked) return result;
    return absl::InternalError(absl::StrCat("the answer has ", response.sequences_size(),
                                            " sequences, the request ", asked));
  }
};

}  // namespace

struct Client::Impl {
  Impl(const ConnectOptions& connect_options, const std::shared_ptr<grpc::Channel>& channel)
      : options(connect_options),
        encoder(v1::Encoder::NewStub(channel)),
        attention(v1::Attention::NewStub(channel)),
        health(HealthService::NewStub(channel)) {}

  const ConnectOptions options;
  const std::unique_ptr<v1::Encoder::Stub> encoder;
  const std::unique_ptr<v1::Attention::Stub> attention;
  const std::unique_ptr<HealthService::Stub> health;
  absl::Mutex mutex;
  std::string only_model ABSL_GUARDED_BY(mutex);
  OutstandingCalls calls;  // destroyed first
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ConnectOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options));
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(options, channel)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

absl::StatusOr<Tensor> Client::Embed(const std::vector<std::string>& texts,
                                     const EmbedOptions& options) {
  EncodeRequest prototype{.model = options.model, .pooled = options.pooled, .dtype = options.dtype};
  if (prototype.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(prototype.model, OnlyModel());
  }
  Tensor embeddings;
  OrderedEncoder encoder(*this, std::move(prototype), {},
                         [&](const EncodeRequest&, const EncodeResult& result) {
                           const Tensor& rows = result.pooled;
                           if (rows.shape.empty()) return absl::InternalError("no embeddings came");
                           return AppendRows("pooled", rows, embeddings);
                         });
  for (const std::string& text : texts) {
    ATTENDANT_RETURN_IF_ERROR(encoder.Add(text));
  }
  ATTENDANT_RETURN_IF_ERROR(encoder.Finish());
  if (embeddings.shape.empty()) embeddings.shape = {0, 0};
  return embeddings;
}

absl::StatusOr<EncodeResult> Client::Encode(const EncodeRequest& request) {
  EncodeRequest named = request;
  if (named.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(named.model, OnlyModel());
  }
  absl::StatusOr<EncodeResult> answer = absl::UnknownError("");
  absl::Notification answered;
  EncodeAsync(named, [&](absl::StatusOr<EncodeResult> result) {
    answer = std::move(result);
    answered.Notify();
  });
  answered.WaitForNotification();
  return answer;
}

void Client::EncodeAsync(const EncodeRequest& request, EncodeDone done) {
  absl::StatusOr<v1::EncodeRequest> proto = ToProto(request);
  if (!proto.ok()) return done(proto.status());
  auto* call = new AsyncEncode(*std::move(proto), std::move(done));
  SetTimeout(impl_->options.timeout, call->context);
  impl_->calls.Add(&call->context);
  impl_->encoder->async()->Encode(&call->context, &call->request, &call->response,
                                  [impl = impl_.get(), call](const grpc::Status& status) {
                                    call->done(call->Result(status));
                                    impl->calls.End(&call->context, [call] { delete call; });
                                  });
}

absl::StatusOr<AttendResult> Client::Attend(const AttendRequest& request) {
  ATTENDANT_ASSIGN_OR_RETURN(v1::AttendRequest proto, ToProto(request));
  grpc::ClientContext context;
  SetTimeout(impl_->options.timeout, context);
  v1::AttendResponse response;
  const grpc::Status status = impl_->attention->Attend(&context, proto, &response);
  if (!status.ok()) return ToAbslStatus(status);
  return FromProto(response);
}

absl::StatusOr<AttentionOffer> Client::ListAttention() {
  grpc::ClientContext context;
  SetTimeout(impl_->options.timeout, context);
  v1::ListAttentionResponse response;
  const grpc::Status status = impl_->attention->ListAttention(&context, {}, &response);
  if (!status.ok()) return ToAbslStatus(status);
  return FromProto(response);
}

absl::StatusOr<std::vector<ModelInfo>> Client::Models() {
  grpc::ClientContext context;
  SetTimeout(impl_->options.timeout, context);
  v1::ListModelsResponse response;
  const grpc::Status status = impl_->encoder->ListModels(&context, {}, &response);
  if (!status.ok()) return ToAbslStatus(status);
  std::vector<ModelInfo> models;
  for (const v1::ModelInfo& model : response.models()) {
    models.push_back(FromProto(model));
  }
  return models;
}

absl::StatusOr<std::string> Client::OnlyModel() {
  {
    absl::MutexLock lock(&impl_->mutex);
    if (!impl_->only_model.empty()) return impl_->only_model;
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<ModelInfo> models, Models());
  if (models.empty()) return absl::NotFoundError("the server has no models");
  std::set<std::string> names;  // which the versions of a model share
  for (const ModelInfo& model : models) names.insert(model.name);
  if (names.size() > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server has ", names.size(),
                     " models, name one of them: ", absl::StrJoin(names, ", ")));
  }
  absl::MutexLock lock(&impl_->mutex);
  impl_->only_model = *names.begin();
  return impl_->only_model;
}

absl::StatusOr<ServingStatus> Client::Health(absl::string_view service, absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(std::min(impl_->options.timeout, timeout), context);
  HealthCheckRequest request;
  request.set_service(std::string(service));
  HealthCheckResponse response;
  const grpc::Status status = impl_->health->Check(&context, request, &response);
  if (!status.ok()) return ToAbslStatus(status);
  return ToServingStatus(response.status());
}

absl::Status Client::WatchHealth(absl::string_view service,
                                 const std::function<bool(ServingStatus)>& changed) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(std::string(service));
  const auto reader = impl_->health->Watch(&context, request);
  HealthCheckResponse response;
  while (reader->Read(&response)) {
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      context.TryCancel();
      reader->Finish();
      return absl::NotFoundError(absl::StrCat("the server knows no service '", service, "'"));
    }
    if (changed(ToServingStatus(response.status()))) continue;
    context.TryCancel();
    reader->Finish();
    return absl::OkStatus();
  }
  return ToAbslStatus(reader->Finish());
}

}  // namespace attendant::client
