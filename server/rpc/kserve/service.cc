// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/service.h"

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "server/rpc/call/status_translation.h"

namespace attendant {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr const char* kModelsAreFixed =
    "models are given when the server starts; it loads and unloads none on request";
constexpr const char* kNoSharedMemory =
    "shared memory is not supported: send tensors inside the messages";
constexpr const char* kNoSettings = "trace and log settings are given when the server starts";

// Clients that count responses wait for the mark: one request, one response, and it is the last.
void FillStreamAnswer(const absl::Status& status, inference::ModelStreamInferResponse& answer) {
  if (!status.ok()) answer.set_error_message(ToGrpcStatus(status).error_message());
  (*answer.mutable_infer_response()->mutable_parameters())["triton_final_response"].set_bool_param(
      true);
}

}  // namespace

KServeService::KServeService(EncodePipeline& pipeline, std::string version, Executor executor,
                             const StreamLimits& stream_limits)
    : pipeline_(pipeline),
      version_(std::move(version)),
      stream_limits_(stream_limits),
      models_(pipeline.models(), pipeline.limits().max_request_sequences),
      inference_(pipeline, models_, std::move(executor)) {}

void KServeService::Close(absl::Time deadline) { CloseAndAwait(calls_, streams_, deadline); }

ServerUnaryReactor* KServeService::ServerLive(CallbackServerContext* context,
                                              const inference::ServerLiveRequest*,
                                              inference::ServerLiveResponse* response) {
  response->set_live(true);
  return AnswerAtOnce(*context, absl::OkStatus());
}

ServerUnaryReactor* KServeService::ServerReady(CallbackServerContext* context,
                                               const inference::ServerReadyRequest*,
                                               inference::ServerReadyResponse* response) {
  response->set_ready(pipeline_.models().Ready().ok());
  return AnswerAtOnce(*context, absl::OkStatus());
}

// Clients ask this in a loop while they wait: what is not there is not ready, and no error.
ServerUnaryReactor* KServeService::ModelReady(CallbackServerContext* context,
                                              const inference::ModelReadyRequest* request,
                                              inference::ModelReadyResponse* response) {
  response->set_ready(models_.Find(request->name(), request->version()).ok());
  return AnswerAtOnce(*context, absl::OkStatus());
}

ServerUnaryReactor* KServeService::ServerMetadata(CallbackServerContext* context,
                                                  const inference::ServerMetadataRequest*,
                                                  inference::ServerMetadataResponse* response) {
  response->set_name("attendant");
  response->set_version(version_);
  for (const char* extension : {"binary_tensor_data", "model_configuration", "parameters",
                                "schedule_policy", "statistics"}) {
    response->add_extensions(extension);
  }
  return AnswerAtOnce(*context, absl::OkStatus());
}

ServerUnaryReactor* KServeService::ModelMetadata(CallbackServerContext* context,
                                                 const inference::ModelMetadataRequest* request,
                                                 inference::ModelMetadataResponse* response) {
  const absl::StatusOr<FoundModel> found = models_.Find(request->name(), request->version());
  if (found.ok()) FillMetadata(found->served, *response);
  return AnswerAtOnce(*context, found.status());
}

ServerUnaryReactor* KServeService::ModelConfig(CallbackServerContext* context,
                                               const inference::ModelConfigRequest* request,
                                               inference::ModelConfigResponse* response) {
  const absl::StatusOr<FoundModel> found = models_.Find(request->name(), request->version());
  if (found.ok()) FillConfig(found->served, *response->mutable_config());
  return AnswerAtOnce(*context, found.status());
}

ServerUnaryReactor* KServeService::ModelStatistics(CallbackServerContext* context,
                                                   const inference::ModelStatisticsRequest* request,
                                                   inference::ModelStatisticsResponse* response) {
  std::vector<FoundModel> wanted;
  if (request->name().empty()) {
    wanted = models_.ListReady();
  } else {
    const absl::StatusOr<FoundModel> found = models_.Find(request->name(), request->version());
    if (!found.ok()) return AnswerAtOnce(*context, found.status());
    wanted.push_back(*found);
  }
  for (const FoundModel& found : wanted) {
    FillStatistics(found.served.name, found.statistics().Snapshot(), *response->add_model_stats());
  }
  return AnswerAtOnce(*context, absl::OkStatus());
}

ServerUnaryReactor* KServeService::ModelInfer(CallbackServerContext* context,
                                              const inference::ModelInferRequest* request,
                                              inference::ModelInferResponse* response) {
  return UnaryCall::Start(calls_, *context,
                          [&](std::shared_ptr<Cancellation> cancellation, UnaryCall::Done done) {
                            inference_.Start(*request, Deadline(*context), std::move(cancellation),
                                             *response, std::move(done));
                          });
}

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
KServeService::ModelStreamInfer(CallbackServerContext* context) {
  auto handler = [this, deadline = Deadline(*context)](InferStream::Exchange& exchange,
                                                       absl::AnyInvocable<void()> answered) {
    inference_.Start(exchange.request, deadline, exchange.cancellation,
                     *exchange.answer.mutable_infer_response(),
                     [&answer = exchange.answer,
                      answered = std::move(answered)](const absl::Status& status) mutable {
                       FillStreamAnswer(status, answer);
                       answered();
                     });
  };
  return InferStream::Start(streams_, stream_limits_, std::move(handler));
}

ServerUnaryReactor* KServeService::RepositoryIndex(CallbackServerContext* context,
                                                   const inference::RepositoryIndexRequest* request,
                                                   inference::RepositoryIndexResponse* response) {
  models_.FillIndex(request->ready(), *response);
  return AnswerAtOnce(*context, absl::OkStatus());
}

#define ATTENDANT_UNIMPLEMENTED(rpc, why)                                                          \
  ServerUnaryReactor* KServeService::rpc(                                                          \
      CallbackServerContext* context, const inference::rpc##Request*, inference::rpc##Response*) { \
    return AnswerAtOnce(*context, absl::UnimplementedError(why));                                  \
  }
ATTENDANT_UNIMPLEMENTED(RepositoryModelLoad, kModelsAreFixed)
ATTENDANT_UNIMPLEMENTED(RepositoryModelUnload, kModelsAreFixed)
ATTENDANT_UNIMPLEMENTED(SystemSharedMemoryStatus, kNoSharedMemory)
ATTENDANT_UNIMPLEMENTED(SystemSharedMemoryRegister, kNoSharedMemory)
ATTENDANT_UNIMPLEMENTED(SystemSharedMemoryUnregister, kNoSharedMemory)
ATTENDANT_UNIMPLEMENTED(CudaSharedMemoryStatus, kNoSharedMemory)
ATTENDANT_UNIMPLEMENTED(CudaSharedMemoryRegister, kNoSharedMemory)
ATTENDANT_UNIMPLEMENTED(CudaSharedMemoryUnregister, kNoSharedMemory)
ATTENDANT_UNIMPLEMENTED(TraceSetting, kNoSettings)
ATTENDANT_UNIMPLEMENTED(LogSettings, kNoSettings)
#undef ATTENDANT_UNIMPLEMENTED

}  // namespace attendant
