// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/requests/call_state.h"
#include "server/rpc/call/open_calls.h"
#include "server/rpc/call/status_translation.h"

namespace attendant {

// A unary call that one request answers. Owns itself: gone after OnDone.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  using Handler = absl::FunctionRef<void(std::shared_ptr<Cancellation> cancellation, Done done)>;

  // `handler` starts the request, and calls `done` once, perhaps inside. It is gone after that; the
  // call is one of `calls` until gRPC lets go of it.
  static UnaryCall* Start(OpenCalls<UnaryCall>& calls, grpc::CallbackServerContext& context,
                          Handler handler) {
    auto* call = new UnaryCall(calls);
    calls.Add(call);
    handler(call->cancellation_, [call, &context](const absl::Status& status) {
      AddRetryHint(status, context);
      call->Finish(ToGrpcStatus(status));
    });
    return call;
  }

  // It ends by itself, once it is answered.
  void Close() {}

  void OnCancel() override { cancellation_->Cancel(); }
  void OnDone() override {
    calls_.Remove(this);
    delete this;
  }

 private:
  explicit UnaryCall(OpenCalls<UnaryCall>& calls) : calls_(calls) {}

  OpenCalls<UnaryCall>& calls_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
};

// The end of a unary call whose answer is already there.
inline grpc::ServerUnaryReactor* AnswerAtOnce(grpc::CallbackServerContext& context,
                                              const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace attendant
