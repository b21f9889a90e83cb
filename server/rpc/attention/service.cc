// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/attention/service.h"

#include <memory>
#include <string>
#include <utility>

#include "kernels/core/status_macros.h"
#include "server/models/attention_model.h"
#include "server/rpc/attention/operation.h"
#include "server/rpc/attention/plan.h"
#include "server/rpc/attention/to_proto.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/wire/messages.h"

namespace attendant {
namespace {

class AttendRun final : public RequestRun {
 public:
  AttendRun(const AttendDependencies& dependencies, RequestCall call,
            const v1::AttendRequest& request, v1::AttendResponse& response)
      : RequestRun(dependencies.requests, std::move(call)),
        max_response_bytes_(dependencies.max_response_bytes),
        request_(request),
        response_(response) {}

 private:
  absl::StatusOr<ServableModel*> Decode() override {
    ATTENDANT_ASSIGN_OR_RETURN(model_, dependencies().models.FindAttention(call().model));
    ATTENDANT_ASSIGN_OR_RETURN(plan_, PlanAttend(request_, *model_));
    format_ = plan_.answer_format;
    return model_;
  }

  absl::StatusOr<PendingRequest> Prepare() override {
    ATTENDANT_ASSIGN_OR_RETURN(ByteBudget::Share memory,
                               Acquire(dependencies().budgets.requests, plan_.operand_bytes));
    ATTENDANT_ASSIGN_OR_RETURN(
        std::unique_ptr<AttendOperation> operation,
        AttendOperation::Make(std::move(plan_), *model_, max_response_bytes_, std::move(memory)));
    ATTENDANT_RETURN_IF_ERROR(AcquireResponse(operation->response_bytes()));
    PendingRequest pending;
    pending.work = std::move(operation);
    pending.priority = request_.priority();
    return pending;
  }

  void Answer(RequestResult result) override {
    operation_.reset(static_cast<AttendOperation*>(result.operation.release()));  // as submitted
    response_.set_id(request_.id());
    response_.set_model(request_.model());
    ToProto(*operation_, format_, response_);
    ToProto(times(), *response_.mutable_timings());
  }

  void CountTokens(ModelMetrics& metrics) const override {
    const attention::Sequences& queries = operation_->queries();
    for (int64_t i = 0; i < queries.batch(); ++i) metrics.ObserveSequence(queries.len(i));
    metrics.CountTokens(operation_->tokens(), 0);
  }

  const int64_t max_response_bytes_;
  const v1::AttendRequest& request_;
  v1::AttendResponse& response_;
  AttentionModel* model_ = nullptr;
  AttendPlan plan_;  // from Decode to Prepare
  NumberFormat format_ = NumberFormat::kF32;
  std::unique_ptr<AttendOperation> operation_;  // once it has run
};

}  // namespace

void AttentionService::Run(Method method, absl::Time deadline, std::shared_ptr<CallState> state,
                           const v1::AttendRequest& request, v1::AttendResponse& response,
                           UnaryCall::Done done) {
  RequestCall call{.method = method,
                   .model = request.model().empty() ? std::string(kAttentionName) : request.model(),
                   .message_bytes = request.ByteSizeLong(),
                   .deadline = deadline,
                   .state = std::move(state),
                   .done = std::move(done)};
  RequestRun::Start(std::make_unique<AttendRun>(dependencies_, std::move(call), request, response));
}

grpc::ServerUnaryReactor* AttentionService::Attend(grpc::CallbackServerContext* context,
                                                   const v1::AttendRequest* request,
                                                   v1::AttendResponse* response) {
  return UnaryCall::Start(calls_, *context,
                          [&](std::shared_ptr<CallState> state, UnaryCall::Done done) {
                            Run(Method::kAttend, Deadline(*context), std::move(state), *request,
                                *response, std::move(done));
                          });
}

grpc::ServerBidiReactor<v1::AttendRequest, v1::AttendStreamResponse>*
AttentionService::AttendStream(grpc::CallbackServerContext* context) {
  auto handler = [this, deadline = Deadline(*context)](Stream::Exchange& exchange,
                                                       Stream::Done done) {
    Run(Method::kAttendStream, deadline, exchange.state, exchange.request,
        *exchange.answer.mutable_response(), std::move(done));
  };
  return Stream::Start(streams_, stream_limits_, std::move(handler), FinishStreamAnswer);
}

grpc::ServerUnaryReactor* AttentionService::ListAttention(
    grpc::CallbackServerContext* context, const v1::ListAttentionRequest* /*request*/,
    v1::ListAttentionResponse* response) {
  KindsToProto(*response);
  for (const ModelStatus& status : dependencies_.requests.models.List()) {
    if (status.attention() != nullptr) ToProto(status, *response->add_modules());
  }
  v1::AttentionLimits& limits = *response->mutable_limits();
  limits.set_max_request_bytes(dependencies_.max_request_bytes);
  limits.set_max_response_bytes(dependencies_.max_response_bytes);
  limits.set_max_attention_tokens(dependencies_.limits.max_tokens);
  limits.set_max_attention_bytes(dependencies_.limits.max_bytes);
  limits.set_max_attention_operations(dependencies_.limits.max_operations);
  return AnswerAtOnce(*context, absl::OkStatus());
}

void AttentionService::Close(absl::Time deadline) { CloseAndAwait(calls_, streams_, deadline); }

}  // namespace attendant
