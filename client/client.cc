// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "attendant/v1/attention.pb.h"
#include "attendant/v1/encoder.pb.h"
#include "client/answer.h"
#include "client/attention_wire.h"
#include "client/channel.h"
#include "client/ordered_encoder.h"
#include "client/utf8.h"
#include "client/wire.h"
#include "grpc/health/v1/health.pb.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using google::protobuf::Empty;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::internal::RpcMethod;
using EncodeDone = absl::AnyInvocable<void(absl::StatusOr<EncodeResult>)>;

ServingStatus ToServingStatus(HealthCheckResponse::ServingStatus status) {
  if (status == HealthCheckResponse::SERVING) return ServingStatus::kServing;
  if (status == HealthCheckResponse::NOT_SERVING) return ServingStatus::kNotServing;
  return ServingStatus::kUnknown;
}

// The names of the models, which the versions of one share. Those that were unloaded, or are being
// unloaded, do not count unless all were.
std::set<std::string> NamesInUse(const std::vector<ModelInfo>& models) {
  std::set<std::string> all, used;
  for (const ModelInfo& model : models) {
    all.insert(model.name);
    if (model.state != "unloaded" && model.state != "draining") used.insert(model.name);
  }
  return used.empty() ? all : used;
}

// Makes rows of int8 the numbers that they stand for, by their scales.
absl::Status Dequantize(const Tensor& scales, Tensor& rows) {
  if (scales.values.empty()) return absl::InternalError("the answer has no pooled_scales");
  const size_t columns = rows.values.size() / scales.values.size();
  for (size_t i = 0; i < rows.values.size(); ++i) rows.values[i] *= scales.values[i / columns];
  return absl::OkStatus();
}

absl::StatusOr<HealthCheckRequest> HealthRequest(absl::string_view service) {
  ATTENDANT_RETURN_IF_ERROR(RequireUtf8("service", service));
  HealthCheckRequest request;
  request.set_service(std::string(service));
  return request;
}

// RepositoryModelLoadRequest or RepositoryModelUnloadRequest of KServe, whose model_name is
// field 2. Their messages are not in the library: a program that also has them from another one, as
// from Triton's client, would not start.
absl::StatusOr<Empty> ModelChange(const std::string& name) {
  ATTENDANT_RETURN_IF_ERROR(RequireUtf8("model", name));
  Empty request;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(2, name);
  return request;
}

struct CancelCall {
  grpc::ClientContext& context;

  void operator()() const { context.TryCancel(); }
};

struct AsyncEncode {
  AsyncEncode(v1::EncodeRequest encode_request, EncodeDone encode_done, std::stop_token stop)
      : request(std::move(encode_request)),
        done(std::move(encode_done)),
        on_stop(std::move(stop), CancelCall{context}) {}

  grpc::ClientContext context;
  const v1::EncodeRequest request;
  grpc::ByteBuffer answer;
  EncodeDone done;
  const std::stop_callback<CancelCall> on_stop;  // destroyed first: it uses the context

  absl::StatusOr<EncodeResult> Result(const grpc::Status& status) {
    if (!status.ok()) return ToAbslStatus(status);
    v1::EncodeResponse response;
    if (!ParseAnswer(answer, response)) return absl::InternalError(kNoAnswer);
    ATTENDANT_ASSIGN_OR_RETURN(EncodeResult result, FromProto(response));
    const int asked = request.sequences().sequences_size();
    if (response.sequences_size() == asked) return result;
    return absl::InternalError(absl::StrCat("the answer has ", response.sequences_size(),
                                            " sequences, the request ", asked));
  }
};

}  // namespace

struct Client::Impl {
  Impl(const ConnectOptions& connect_options, std::shared_ptr<grpc::Channel> server)
      : options(connect_options), channel(std::move(server)), encoder(channel) {}

  // Calls a method and waits for its answer.
  template <typename Answer, typename Request>
  absl::StatusOr<Answer> Call(const char* path, const Request& request, absl::Duration timeout) {
    grpc::ClientContext context;
    SetTimeout(timeout, context);
    grpc::ByteBuffer bytes;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel.get(), RpcMethod(path, RpcMethod::NORMAL_RPC), &context, request, &bytes);
    if (!status.ok()) return ToAbslStatus(status);
    Answer answer;
    if (!ParseAnswer(bytes, answer)) return absl::InternalError(kNoAnswer);
    return answer;
  }

  absl::Status ChangeModel(const char* path, const std::string& name) {
    ATTENDANT_ASSIGN_OR_RETURN(const Empty request, ModelChange(name));
    const absl::Status status = Call<Empty>(path, request, options.timeout).status();
    {
      absl::MutexLock lock(&mutex);
      only_model.clear();  // after an error too: the server may go on
    }
    // Triton's code and words for it; to try again would not help.
    if (absl::IsUnavailable(status) && absl::StartsWith(status.message(), "explicit model load")) {
      return absl::PermissionDeniedError(status.message());
    }
    return status;
  }

  const ConnectOptions options;
  const std::shared_ptr<grpc::Channel> channel;
  grpc::TemplatedGenericStub<v1::EncodeRequest, grpc::ByteBuffer> encoder;
  absl::Mutex mutex;
  std::string only_model ABSL_GUARDED_BY(mutex);
  OutstandingCalls calls;  // destroyed first
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ConnectOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options));
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(options, std::move(channel))));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// While impl_ is whole: callbacks may call the client.
Client::~Client() { impl_->calls.CancelAndWait(); }

absl::StatusOr<Tensor> Client::Embed(const std::vector<std::string>& texts,
                                     const EmbedOptions& options) {
  if (options.pooled.chunk_tokens != 0) {
    return absl::InvalidArgumentError(
        "chunk_tokens is for Encode: Embed has one row for each text");
  }
  EncodeRequest prototype{.model = options.model,
                          .model_version = options.model_version,
                          .pooled = options.pooled,
                          .dtype = options.dtype};
  if (prototype.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(prototype.model, OnlyModel());
  }
  Tensor embeddings;
  OrderedEncoder encoder(*this, std::move(prototype), {},
                         [&](const EncodeRequest&, const EncodeResult& result) -> absl::Status {
                           Tensor rows = result.pooled;
                           if (rows.shape.empty()) return absl::InternalError("no embeddings came");
                           if (options.pooled.format == EmbeddingFormat::kInt8) {
                             ATTENDANT_RETURN_IF_ERROR(Dequantize(result.pooled_scales, rows));
                           }
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

void Client::EncodeAsync(const EncodeRequest& request, EncodeDone done, std::stop_token stop) {
  absl::StatusOr<v1::EncodeRequest> proto = ToProto(request);
  if (!proto.ok()) return done(proto.status());
  auto* call = new AsyncEncode(*std::move(proto), std::move(done), std::move(stop));
  SetTimeout(impl_->options.timeout, call->context);
  impl_->calls.Add(&call->context);
  impl_->encoder.UnaryCall(&call->context, "/attendant.v1.Encoder/Encode", {}, &call->request,
                           &call->answer, [impl = impl_.get(), call](const grpc::Status& status) {
                             call->done(call->Result(status));
                             impl->calls.End(&call->context, [call] { delete call; });
                           });
}

absl::StatusOr<AttendResult> Client::Attend(const AttendRequest& request) {
  ATTENDANT_ASSIGN_OR_RETURN(v1::AttendRequest proto, ToProto(request));
  ATTENDANT_ASSIGN_OR_RETURN(const v1::AttendResponse response,
                             impl_->Call<v1::AttendResponse>("/attendant.v1.Attention/Attend",
                                                             proto, impl_->options.timeout));
  return FromProto(response, proto);
}

absl::StatusOr<AttentionOffer> Client::ListAttention() {
  ATTENDANT_ASSIGN_OR_RETURN(
      const v1::ListAttentionResponse response,
      impl_->Call<v1::ListAttentionResponse>("/attendant.v1.Attention/ListAttention",
                                             v1::ListAttentionRequest(), impl_->options.timeout));
  return FromProto(response);
}

absl::StatusOr<std::vector<ModelInfo>> Client::Models() {
  ATTENDANT_ASSIGN_OR_RETURN(
      const v1::ListModelsResponse response,
      impl_->Call<v1::ListModelsResponse>("/attendant.v1.Encoder/ListModels",
                                          v1::ListModelsRequest(), impl_->options.timeout));
  std::vector<ModelInfo> models;
  for (const v1::ModelInfo& model : response.models()) {
    models.push_back(FromProto(model));
  }
  return models;
}

absl::StatusOr<ModelInfo> Client::Describe(const std::string& name, int64_t version) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<ModelInfo> models, Models());
  const auto rank = [](const ModelInfo& model) {
    return std::pair(model.state == "ready" || model.state == "idle", model.version);
  };
  const ModelInfo* found = nullptr;
  for (const ModelInfo& model : models) {
    if (model.name != name || (version != 0 && model.version != version)) continue;
    if (found == nullptr || rank(model) > rank(*found)) found = &model;
  }
  if (found != nullptr) return *found;
  const std::string which = version == 0 ? "" : absl::StrCat(" of version ", version);
  return absl::NotFoundError(absl::StrCat("the server has no encoder ", name, which));
}

absl::StatusOr<std::string> Client::OnlyModel() {
  {
    absl::MutexLock lock(&impl_->mutex);
    if (!impl_->only_model.empty()) return impl_->only_model;
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<ModelInfo> models, Models());
  if (models.empty()) return absl::NotFoundError("the server has no models");
  const std::set<std::string> names = NamesInUse(models);
  if (names.size() > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server has ", names.size(),
                     " models, name one of them: ", absl::StrJoin(names, ", ")));
  }
  absl::MutexLock lock(&impl_->mutex);
  impl_->only_model = *names.begin();
  return impl_->only_model;
}

absl::Status Client::LoadModel(const std::string& name) {
  return impl_->ChangeModel("/inference.GRPCInferenceService/RepositoryModelLoad", name);
}

absl::Status Client::UnloadModel(const std::string& name) {
  return impl_->ChangeModel("/inference.GRPCInferenceService/RepositoryModelUnload", name);
}

absl::StatusOr<ServingStatus> Client::Health(absl::string_view service, absl::Duration timeout) {
  ATTENDANT_ASSIGN_OR_RETURN(const HealthCheckRequest request, HealthRequest(service));
  ATTENDANT_ASSIGN_OR_RETURN(
      const HealthCheckResponse response,
      impl_->Call<HealthCheckResponse>("/grpc.health.v1.Health/Check", request,
                                       std::min(impl_->options.timeout, timeout)));
  return ToServingStatus(response.status());
}

absl::Status Client::WatchHealth(absl::string_view service,
                                 const std::function<bool(ServingStatus)>& changed) {
  ATTENDANT_ASSIGN_OR_RETURN(const HealthCheckRequest request, HealthRequest(service));
  grpc::ClientContext context;
  const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
          impl_->channel.get(),
          RpcMethod("/grpc.health.v1.Health/Watch", RpcMethod::SERVER_STREAMING), &context,
          request));
  const auto stop = [&](absl::Status status) {
    context.TryCancel();
    reader->Finish();
    return status;
  };
  grpc::ByteBuffer bytes;
  while (reader->Read(&bytes)) {
    HealthCheckResponse response;
    if (!ParseAnswer(bytes, response)) return stop(absl::InternalError(kNoAnswer));
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      return stop(absl::NotFoundError(absl::StrCat("the server knows no service '", service, "'")));
    }
    if (!changed(ToServingStatus(response.status()))) return stop(absl::OkStatus());
  }
  return ToAbslStatus(reader->Finish());
}

}  // namespace attendant::client
