// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/unary_caller.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/status.h>

#include <string>
#include <utility>

#include "client/answer.h"

namespace attendant::client {

struct UnaryCaller::Call final : CompletionThread::Tag {
  Call(UnaryCaller& call_caller, const GrpcRequest& call_request, Done call_done)
      : caller(call_caller), request(call_request), done(std::move(call_done)) {}

  void Complete(bool) override { caller.Finish(this); }

  UnaryCaller& caller;
  const GrpcRequest& request;
  const Done done;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> rpc;
  grpc::ByteBuffer answer;
  grpc::Status status;
};

UnaryCaller::UnaryCaller(GrpcLoad load, absl::Duration timeout)
    : load_(std::move(load)),
      timeout_(timeout),
      threads_(MakeCompletionThreads(load_.channels.size())) {
  for (const GrpcRequest& request : load_.requests) messages_.emplace_back(&request.message, 1);
  for (const std::shared_ptr<grpc::Channel>& channel : load_.channels) {
    methods_.emplace_back(load_.unary.path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, channel);
  }
  for (const std::unique_ptr<CompletionThread>& thread : threads_) thread->Start(nullptr);
}

void UnaryCaller::Start(int64_t index, int64_t connection, Done done) {
  const size_t at = static_cast<size_t>(index) % messages_.size();
  const size_t channel = static_cast<size_t>(connection) % methods_.size();
  auto* call = new Call(*this, load_.requests[at], std::move(done));
  SetTimeout(timeout_, call->context);
  for (const auto& [key, value] : load_.metadata) call->context.AddMetadata(key, value);
  calls_.Add(&call->context);
  call->rpc.reset(grpc::internal::ClientAsyncResponseReaderHelper::Create<grpc::ByteBuffer>(
      load_.channels[channel].get(), threads_[channel % threads_.size()]->queue(),
      methods_[channel], &call->context, messages_[at]));
  call->rpc->StartCall();
  call->rpc->Finish(&call->answer, &call->status, call);
}

void UnaryCaller::Finish(Call* call) {
  GrpcAnswer answer{
      .result = {.code = call->status.error_code(), .message = call->status.error_message()}};
  if (call->status.ok() && !load_.unary.read(call->answer, answer)) {
    answer.result = {.code = grpc::StatusCode::INTERNAL, .message = std::string(kNoAnswer)};
  }
  call->done(ResultOf(call->request, std::move(answer)));
  calls_.End(&call->context, [call] { delete call; });
}

}  // namespace attendant::client
