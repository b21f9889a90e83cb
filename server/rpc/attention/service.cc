// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/attention/service.h"

#include <memory>
#include <utility>

#include "server/models/attention_model.h"
#include "server/rpc/attention/plan.h"
#include "server/rpc/call/status_translation.h"
#include "server/rpc/call/stream_error.h"

namespace attendant {

AttentionService::AttentionService(const AttentionServing& serving, Executor executor,
                                   const StreamLimits& limits)
    : serving_(serving), executor_(std::move(executor)), stream_limits_(limits) {}

grpc::ServerUnaryReactor* AttentionService::Attend(grpc::CallbackServerContext* context,
                                                   const v1::AttendRequest* request,
                                                   v1::AttendResponse* response) {
  return UnaryCall::Start(calls_, *context,
                          [&](std::shared_ptr<Cancellation> cancellation, UnaryCall::Done done) {
                            const AttendCall call{serving_, executor_, Method::kAttend,
                                                  Deadline(*context), std::move(cancellation)};
                            RunAttendCall(call, *request, *response, std::move(done));
                          });
}

grpc::ServerBidiReactor<v1::AttendRequest, v1::AttendStreamResponse>*
AttentionService::AttendStream(grpc::CallbackServerContext* context) {
  auto handler = [this, deadline = Deadline(*context)](Stream::Exchange& exchange,
                                                       absl::AnyInvocable<void()> answered) {
    const AttendCall call{serving_, executor_, Method::kAttendStream, deadline,
                          exchange.cancellation};
    RunAttendCall(call, exchange.request, *exchange.answer.mutable_response(),
                  [&exchange, answered = std::move(answered)](const absl::Status& status) mutable {
                    FillStreamAnswer(exchange.request.id(), status, exchange.answer);
                    answered();
                  });
  };
  return Stream::Start(streams_, stream_limits_, std::move(handler));
}

grpc::ServerUnaryReactor* AttentionService::ListAttention(
    grpc::CallbackServerContext* context, const v1::ListAttentionRequest* /*request*/,
    v1::ListAttentionResponse* response) {
  EncodeKinds(*response);
  for (const ModelStatus& status : serving_.models.List()) {
    if (status.attention() != nullptr) EncodeModule(status, *response->add_modules());
  }
  v1::AttentionLimits& limits = *response->mutable_limits();
  limits.set_max_request_bytes(serving_.max_request_bytes);
  limits.set_max_response_bytes(serving_.max_response_bytes);
  limits.set_max_attention_tokens(serving_.limits.max_tokens);
  limits.set_max_attention_bytes(serving_.limits.max_bytes);
  limits.set_max_attention_operations(serving_.limits.max_operations);
  return AnswerAtOnce(*context, absl::OkStatus());
}

void AttentionService::Close(absl::Time deadline) { CloseAndAwait(calls_, streams_, deadline); }

}  // namespace attendant
