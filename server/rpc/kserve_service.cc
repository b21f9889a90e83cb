// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve_service.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/access/api_keys.h"
#include "server/protocols/kserve/infer_run.h"
#include "server/protocols/kserve/served_kinds.h"
#include "server/protocols/typed_message.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/scan/received_message.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

constexpr const char* kNoSharedMemory =
    "system shared memory is off: send tensors inside the messages, or start the server with "
    "--system_shared_memory=on";
constexpr const char* kNoCudaMemory =
    "CUDA shared memory is not supported: send tensors inside the messages";
constexpr const char* kNoSettings = "trace and log settings are given when the server starts";

// For the map of a model's own files, which clients of Triton may send along, there is no use here.
absl::Status CheckParameters(const inference::RepositoryModelLoadRequest& request) {
  for (const auto& [name, value] : request.parameters()) {
    if (name == "config" || absl::StartsWith(name, "file:")) {
      return absl::UnimplementedError(absl::StrCat(
          "parameter ", Quote(name), " is not supported: the model's folder has all of it"));
    }
    return absl::InvalidArgumentError(absl::StrCat("there is no load parameter ", Quote(name)));
  }
  return absl::OkStatus();
}
absl::Status CheckParameters(const inference::RepositoryModelUnloadRequest& request) {
  for (const auto& [name, value] : request.parameters()) {
    if (name == "unload_dependents") continue;  // no model depends on another
    return absl::InvalidArgumentError(absl::StrCat("there is no unload parameter ", Quote(name)));
  }
  return absl::OkStatus();
}

absl::Status CheckRepository(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  return absl::UnimplementedError("repository_name is not supported: there is one repository");
}

absl::Status RegionsToProto(const SharedMemoryRegions& regions, const std::string& name,
                            inference::SystemSharedMemoryStatusResponse& response) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto list, regions.List(name));
  for (const auto& [region_name, region] : list) {
    auto& status = (*response.mutable_regions())[region_name];
    status.set_name(region_name);
    status.set_key(region.key);
    status.set_offset(static_cast<uint64_t>(region.offset));
    status.set_byte_size(static_cast<uint64_t>(region.bytes));
  }
  return absl::OkStatus();
}

constexpr InferMessageAccess kReceivedMessage = {
    .request = Parsed<inference::ModelInferRequest>,
    .text_bytes = [](const RequestMessage&) { return int64_t{0}; }};

inference::ModelInferResponse& InferResponseOf(inference::ModelStreamInferResponse& answer) {
  return *answer.mutable_infer_response();
}

// Clients that count responses wait for the mark: one request, one response, and it is the last.
void FinishAnswer(const std::string& id, const absl::Status& status,
                  inference::ModelStreamInferResponse& answer) {
  answer.mutable_infer_response()->set_id(id);
  if (!status.ok()) answer.set_error_message(ToGrpcStatus(status).error_message());
  (*answer.mutable_infer_response()->mutable_parameters())["triton_final_response"].set_bool_param(
      true);
}

}  // namespace

WireRules InferRules(const EncodeLimits& limits) {
  return {.limits = {{"inference.InferTensorContents.bytes_contents",
                      kMaxRowTexts * limits.max_request_sequences}},
          .id_field = "id",
          .model_field = "model_name"};
}

KServeService::KServeService(const EncodeDependencies& dependencies, std::string version,
                             const StreamLimits& stream_limits, bool shared_memory)
    : RawService(dependencies.requests.gate, dependencies.requests.budgets),
      dependencies_(dependencies),
      version_(std::move(version)),
      models_(dependencies.requests.models, dependencies.limits.max_request_sequences),
      regions_(shared_memory ? std::make_unique<SharedMemoryRegions>() : nullptr),
      infer_(dependencies.requests.budgets, stream_limits,
             {.unary = Method::kModelInfer,
              .stream = Method::kModelInfer,
              .rules = InferRules(dependencies.limits),
              .response_of = InferResponseOf,
              .finisher = FinishAnswer,
              .start = [this](RequestCall call, inference::ModelInferResponse& response) {
                StartInfer(dependencies_, models_, regions_.get(), kReceivedMessage,
                           std::move(call), response);
              }}) {
  ServeServer();
  ServeModels();
  ServeRequests("ModelInfer", "ModelStreamInfer", infer_);
  ServeControl();
  ServeSharedMemory();
  ServeUnsupported();
}

void KServeService::ServeServer() {
  ServeSmall<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      "ServerLive", MethodGroup::kOpen,
      [this](const auto& /*request*/, inference::ServerLiveResponse& response) {
        response.set_live(dependencies_.requests.models.Live().ok());
        return absl::OkStatus();
      });
  ServeSmall<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      "ServerReady", MethodGroup::kOpen,
      [this](const auto& /*request*/, inference::ServerReadyResponse& response) {
        response.set_ready(dependencies_.requests.models.Ready().ok());
        return absl::OkStatus();
      });
  ServeSmall<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      "ServerMetadata", MethodGroup::kRead,
      [this](const auto& /*request*/, inference::ServerMetadataResponse& response) {
        FillServerMetadata(version_, response);
        response.add_extensions("model_repository");
        return absl::OkStatus();
      });
}

void KServeService::ServeModels() {
  // Clients ask this in a loop while they wait: a missing model is not ready, and no error.
  ServeSmall<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      "ModelReady", MethodGroup::kOpen,
      [this](const inference::ModelReadyRequest& request, inference::ModelReadyResponse& response) {
        response.set_ready(models_.Describe(request.name(), request.version()).ok());
        return absl::OkStatus();
      });
  ServeSmall<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      "ModelMetadata", MethodGroup::kRead,
      [this](const inference::ModelMetadataRequest& request,
             inference::ModelMetadataResponse& response) {
        const auto found = models_.Describe(request.name(), request.version());
        if (found.ok()) ToProto(*found, response);
        return found.status();
      });
  ServeSmall<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      "ModelConfig", MethodGroup::kRead,
      [this](const inference::ModelConfigRequest& request,
             inference::ModelConfigResponse& response) {
        const auto found = models_.Describe(request.name(), request.version());
        if (found.ok()) ToProto(*found, *response.mutable_config());
        return found.status();
      });
  ServeSmall<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
      "ModelStatistics", MethodGroup::kRead,
      [this](const inference::ModelStatisticsRequest& request,
             inference::ModelStatisticsResponse& response) {
        return models_.FillStatistics(request.name(), request.version(), response);
      });
  ServeSmall<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      "RepositoryIndex", MethodGroup::kRead,
      [this](const inference::RepositoryIndexRequest& request,
             inference::RepositoryIndexResponse& response) {
        ATTENDANT_RETURN_IF_ERROR(CheckRepository(request.repository_name()));
        models_.FillIndex(request.ready(), response);
        return absl::OkStatus();
      });
}

template <typename Request, typename Response>
void KServeService::ServeChange(const char* method,
                                void (ModelRegistry::*change)(const std::string&,
                                                              ModelRegistry::Done)) {
  auto start = [this, change](grpc::ByteBuffer& bytes, UnaryCall::Done done) {
    ModelRegistry& models = dependencies_.requests.models;
    Request request;
    absl::Status status = ReadSmall(bytes, request);
    if (status.ok()) status = models.CheckControl();
    if (status.ok()) status = CheckRepository(request.repository_name());
    if (status.ok()) status = CheckParameters(request);
    if (!status.ok()) return done(status);
    (models.*change)(request.model_name(), std::move(done));
  };
  auto log_end = [this](const IncomingCall& call, int64_t request_bytes, UnaryCall::Done done) {
    return [this, info = call.info, arrival = SteadyNow(), request_bytes,
            done = std::move(done)](const absl::Status& status) mutable {
      dependencies_.requests.gate.Ended(
          *info,
          {.code = status.code(), .request_bytes = request_bytes, .total = SteadyNow() - arrival});
      done(status);
    };
  };
  ServeUnary<Response>(
      method, MethodGroup::kAdmin,
      [start, log_end](const IncomingCall& call, grpc::ByteBuffer& bytes, Response&,
                       const std::shared_ptr<CallState>& state, UnaryCall::Done done) {
        const auto request_bytes = static_cast<int64_t>(bytes.Length());
        UnaryCall::Done end = log_end(call, request_bytes, std::move(done));
        const absl::Status held = state->AcquireRequest(kRequestBytes + request_bytes);
        held.ok() ? start(bytes, std::move(end)) : end(held);
      });
}

void KServeService::ServeControl() {
  ServeChange<inference::RepositoryModelLoadRequest, inference::RepositoryModelLoadResponse>(
      "RepositoryModelLoad", &ModelRegistry::Load);
  ServeChange<inference::RepositoryModelUnloadRequest, inference::RepositoryModelUnloadResponse>(
      "RepositoryModelUnload", &ModelRegistry::Unload);
}

// As Triton: without a region the status is empty, and unregistering does nothing.
void KServeService::ServeSharedMemory() {
  static const SharedMemoryRegions& none = *new SharedMemoryRegions;
  ServeSmall<inference::SystemSharedMemoryStatusRequest,
             inference::SystemSharedMemoryStatusResponse>(
      "SystemSharedMemoryStatus", MethodGroup::kRead,
      [this](const auto& request, inference::SystemSharedMemoryStatusResponse& response) {
        return RegionsToProto(regions_ == nullptr ? none : *regions_, request.name(), response);
      });
  ServeSmall<inference::SystemSharedMemoryRegisterRequest,
             inference::SystemSharedMemoryRegisterResponse>(
      "SystemSharedMemoryRegister", MethodGroup::kAdmin,
      [this](const inference::SystemSharedMemoryRegisterRequest& request, auto&) -> absl::Status {
        if (regions_ == nullptr) return absl::UnimplementedError(kNoSharedMemory);
        return regions_->Register(request.name(), request.key(), request.offset(),
                                  request.byte_size());
      });
  ServeSmall<inference::SystemSharedMemoryUnregisterRequest,
             inference::SystemSharedMemoryUnregisterResponse>(
      "SystemSharedMemoryUnregister", MethodGroup::kAdmin, [this](const auto& request, auto&) {
        if (regions_ != nullptr) regions_->Unregister(request.name());
        return absl::OkStatus();
      });
  ServeSmall<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse>(
      "CudaSharedMemoryStatus", MethodGroup::kRead,
      [](const auto& request, auto&) { return none.List(request.name()).status(); });
  ServeSmall<inference::CudaSharedMemoryUnregisterRequest,
             inference::CudaSharedMemoryUnregisterResponse>(
      "CudaSharedMemoryUnregister", MethodGroup::kAdmin,
      [](const auto&, auto&) { return absl::OkStatus(); });
}

void KServeService::ServeUnsupported() {
#define ATTENDANT_UNIMPLEMENTED(rpc, group, why)                 \
  ServeSmall<inference::rpc##Request, inference::rpc##Response>( \
      #rpc, MethodGroup::group,                                  \
      [](const auto& /*request*/, auto& /*response*/) { return absl::UnimplementedError(why); });
  ATTENDANT_UNIMPLEMENTED(CudaSharedMemoryRegister, kAdmin, kNoCudaMemory)
  ATTENDANT_UNIMPLEMENTED(TraceSetting, kAdmin, kNoSettings)
  ATTENDANT_UNIMPLEMENTED(LogSettings, kAdmin, kNoSettings)
#undef ATTENDANT_UNIMPLEMENTED
}

}  // namespace attendant
