// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/service.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/core/status_macros.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/kserve/tensors.h"

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
void FinishAnswer(const inference::ModelInferRequest& /*request*/, const absl::Status& status,
                  inference::ModelStreamInferResponse& answer) {
  if (!status.ok()) answer.set_error_message(ToGrpcStatus(status).error_message());
  (*answer.mutable_infer_response()->mutable_parameters())["triton_final_response"].set_bool_param(
      true);
}

// One ModelInfer request, unary or of a stream.
class InferRun final : public EncodeRun {
 public:
  InferRun(const EncodeDependencies& dependencies, const KServeModels& models, RequestCall call,
           const inference::ModelInferRequest& request, inference::ModelInferResponse& response)
      : EncodeRun(dependencies, std::move(call)),
        models_(models),
        request_(request),
        response_(response) {
    response.set_id(request.id());  // also when the request fails
  }

 private:
  absl::StatusOr<EncoderModel*> FindModel() override {
    ATTENDANT_ASSIGN_OR_RETURN(ref_, models_.Find(request_.model_name(), request_.model_version()));
    return ref_.model;
  }

  absl::StatusOr<EncodeInput> FromMessage() override {
    ATTENDANT_ASSIGN_OR_RETURN(const InferParameters parameters, FromProto(request_.parameters()));
    ATTENDANT_RETURN_IF_ERROR(CheckRequestedOutputs(request_, ref_.info));
    ATTENDANT_ASSIGN_OR_RETURN(InferInputs inputs, InputsFromProto(request_, ref_.info));
    seq_ = inputs.seq;
    LimitDeadline(times().arrival + parameters.timeout);
    EncodeInput input;
    input.sequences = std::move(inputs.sequences);
    input.last_hidden_state = ref_.info.kind == ServedName::kEncoder;
    input.pooled = !input.last_hidden_state;
    input.priority = parameters.priority;
    return input;
  }

  absl::StatusOr<PendingRequest> Prepare() override {
    ATTENDANT_ASSIGN_OR_RETURN(PendingRequest pending, EncodeRun::Prepare());
    ref_.model->statistics.Enter(ref_.info.kind);
    entered_ = true;
    return pending;
  }

  void ToMessage(EncodeOutput& output) override {
    response_.set_model_name(ref_.info.name);
    response_.set_model_version(std::string(kKServeVersion));
    ToProto(output, ref_.info, seq_, response_);
  }

  void OnEnd(const absl::Status& status) override {
    if (ref_.model == nullptr) return;  // refused before the model was found
    if (entered_) ref_.model->statistics.Leave(ref_.info.kind);
    if (!status.ok()) return ref_.statistics().RecordFailure(times().total());
    ref_.statistics().RecordSuccess({.sequences = static_cast<int64_t>(output().sequences.size()),
                                     .total = times().total(),
                                     .queue = times().queue,
                                     .compute_input = times().decode,
                                     .compute_infer = times().compute,
                                     .compute_output = times().serialize},
                                    absl::Now());
  }

  const KServeModels& models_;
  const inference::ModelInferRequest& request_;
  inference::ModelInferResponse& response_;
  KServeModelRef ref_;
  int64_t seq_ = 0;       // of ids: their padded length
  bool entered_ = false;  // the statistics count batches for this request
};

}  // namespace

KServeService::KServeService(const EncodeDependencies& dependencies, std::string version,
                             const StreamLimits& stream_limits)
    : dependencies_(dependencies),
      version_(std::move(version)),
      stream_limits_(stream_limits),
      models_(dependencies.requests.models, dependencies.limits.max_request_sequences) {}

void KServeService::Infer(absl::Time deadline, std::shared_ptr<CallState> state,
                          const inference::ModelInferRequest& request,
                          inference::ModelInferResponse& response, UnaryCall::Done done) {
  RequestCall call{.method = Method::kModelInfer,
                   .model = std::string(SplitServedName(request.model_name()).first),
                   .message_bytes = request.ByteSizeLong(),
                   .deadline = deadline,
                   .state = std::move(state),
                   .done = std::move(done)};
  RequestRun::Start(
      std::make_unique<InferRun>(dependencies_, models_, std::move(call), request, response));
}

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
  response->set_ready(dependencies_.requests.models.Ready().ok());
  return AnswerAtOnce(*context, absl::OkStatus());
}

// Clients ask this in a loop while they wait: a missing model is not ready, and no error.
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
  const absl::StatusOr<KServeModelRef> found = models_.Find(request->name(), request->version());
  if (found.ok()) ToProto(found->info, *response);
  return AnswerAtOnce(*context, found.status());
}

ServerUnaryReactor* KServeService::ModelConfig(CallbackServerContext* context,
                                               const inference::ModelConfigRequest* request,
                                               inference::ModelConfigResponse* response) {
  const absl::StatusOr<KServeModelRef> found = models_.Find(request->name(), request->version());
  if (found.ok()) ToProto(found->info, *response->mutable_config());
  return AnswerAtOnce(*context, found.status());
}

ServerUnaryReactor* KServeService::ModelStatistics(CallbackServerContext* context,
                                                   const inference::ModelStatisticsRequest* request,
                                                   inference::ModelStatisticsResponse* response) {
  std::vector<KServeModelRef> wanted;
  if (request->name().empty()) {
    wanted = models_.ListReady();
  } else {
    const absl::StatusOr<KServeModelRef> found = models_.Find(request->name(), request->version());
    if (!found.ok()) return AnswerAtOnce(*context, found.status());
    wanted.push_back(*found);
  }
  for (const KServeModelRef& found : wanted) {
    ToProto(found.info.name, found.statistics().Snapshot(), *response->add_model_stats());
  }
  return AnswerAtOnce(*context, absl::OkStatus());
}

ServerUnaryReactor* KServeService::ModelInfer(CallbackServerContext* context,
                                              const inference::ModelInferRequest* request,
                                              inference::ModelInferResponse* response) {
  return UnaryCall::Start(
      calls_, *context, [&](std::shared_ptr<CallState> state, UnaryCall::Done done) {
        Infer(Deadline(*context), std::move(state), *request, *response, std::move(done));
      });
}

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
KServeService::ModelStreamInfer(CallbackServerContext* context) {
  auto handler = [this, deadline = Deadline(*context)](InferStream::Exchange& exchange,
                                                       InferStream::Done done) {
    Infer(deadline, exchange.state, exchange.request, *exchange.answer.mutable_infer_response(),
          std::move(done));
  };
  return InferStream::Start(streams_, stream_limits_, std::move(handler), FinishAnswer);
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
