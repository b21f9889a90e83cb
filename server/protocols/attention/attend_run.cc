// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/attend_run.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "kernels/core/status_macros.h"
#include "server/models/attention_model.h"
#include "server/protocols/attention/operation.h"
#include "server/protocols/attention/plan.h"
#include "server/protocols/attention/to_proto.h"
#include "server/protocols/typed_message.h"
#include "server/protocols/wire/messages.h"

namespace attendant {
namespace {

class AttendRun final : public RequestRun {
 public:
  AttendRun(const AttendDependencies& dependencies, RequestCall call, v1::AttendResponse& response)
      : RequestRun(dependencies.requests, std::move(call)),
        max_response_bytes_(dependencies.max_response_bytes),
        response_(response) {}

 private:
  std::string ModelName(const std::string& name) const override {
    return name.empty() ? std::string(kAttentionName) : name;
  }

  absl::StatusOr<std::shared_ptr<ServableModel>> Decode() override {
    const v1::AttendRequest& request = Message().message();
    ATTENDANT_ASSIGN_OR_RETURN(model_, dependencies().models.FindAttention(call().model));
    ATTENDANT_ASSIGN_OR_RETURN(plan_, PlanAttend(request, *model_));
    format_ = plan_.answer_format;
    model_name_ = request.model();
    return model_;
  }

  absl::StatusOr<WorkRequest> Prepare() override {
    ATTENDANT_ASSIGN_OR_RETURN(ByteBudget::Share memory, AcquireOwn(plan_.operand_bytes));
    ATTENDANT_ASSIGN_OR_RETURN(
        std::unique_ptr<AttendOperation> operation,
        AttendOperation::Make(std::move(plan_), *model_, max_response_bytes_, std::move(memory)));
    int64_t bytes = operation->response_bytes();
    if (Message().wants_json()) bytes += bytes / 3;  // base64 takes four bytes for three
    ATTENDANT_RETURN_IF_ERROR(AcquireResponse(bytes + kAnswerBytes));
    WorkRequest request;
    request.work = std::move(operation);
    request.priority = Message().message().priority();
    return request;
  }

  void Answer(Work work) override {
    auto& operation = std::get<std::unique_ptr<Operation>>(work);
    operation_.reset(static_cast<AttendOperation*>(operation.release()));  // as submitted
    response_.set_id(call().state->client_id());
    response_.set_model(model_name_);
    ToProto(*operation_, format_, response_);
    ToProto(times(), *response_.mutable_timings());
  }

  int64_t AnswerBytes() const override { return static_cast<int64_t>(response_.ByteSizeLong()); }

  RequestTokens CountTokens(ModelMetrics& metrics) const override {
    const attention::Sequences& queries = operation_->queries();
    for (int64_t i = 0; i < queries.batch(); ++i) metrics.ObserveSequence(queries.len(i));
    return {.sequences = queries.batch(), .valid = operation_->tokens()};
  }

  const TypedMessage<v1::AttendRequest>& Message() const {
    return MessageAs<TypedMessage<v1::AttendRequest>>(message());
  }

  const int64_t max_response_bytes_;
  v1::AttendResponse& response_;
  std::shared_ptr<AttentionModel> model_;
  std::string model_name_;  // as the client said it
  AttendPlan plan_;         // from Decode to Prepare
  NumberFormat format_ = NumberFormat::kF32;
  std::unique_ptr<AttendOperation> operation_;  // once it has run
};

}  // namespace

void StartAttend(const AttendDependencies& dependencies, RequestCall call,
                 v1::AttendResponse& response) {
  RequestRun::Start(std::make_unique<AttendRun>(dependencies, std::move(call), response));
}

void DescribeAttention(const AttendDependencies& dependencies,
                       v1::ListAttentionResponse& response) {
  KindsToProto(response);
  for (const ModelStatus& status : dependencies.requests.models.List()) {
    if (status.is_module) ToProto(status, *response.add_modules());
  }
  v1::AttentionLimits& limits = *response.mutable_limits();
  limits.set_max_request_bytes(dependencies.max_request_bytes);
  limits.set_max_response_bytes(dependencies.max_response_bytes);
  limits.set_max_attention_tokens(dependencies.limits.max_tokens);
  limits.set_max_attention_bytes(dependencies.limits.max_bytes);
  limits.set_max_attention_operations(dependencies.limits.max_operations);
}

}  // namespace attendant
