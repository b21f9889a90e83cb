// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/scan/received_message.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant::tei {

// The dependencies of the services of tei.v1. They outlive all services.
struct Dependencies {
  const EncodeDependencies& encode;
  StreamLimits streams;
  std::string version;
};

// The model that a call's metadata names (NamedOrOnlyModel).
absl::StatusOr<std::string> ModelOf(const grpc::CallbackServerContext& context,
                                    const ModelRegistry& models);

// The open calls of one method, as its server sees them.
class OpenMethod {
 public:
  virtual ~OpenMethod() = default;
  virtual void CloseAll() = 0;
  virtual void AwaitClosed(absl::Time deadline) = 0;
  virtual int CancelSlow(WriteClock::time_point since) = 0;
};

template <typename Calls>
class OpenMethodOf final : public OpenMethod {
 public:
  void CloseAll() override { calls.CloseAll(); }
  void AwaitClosed(absl::Time deadline) override { calls.AwaitClosed(deadline); }
  int CancelSlow(WriteClock::time_point since) override { return calls.CancelSlow(since); }

  OpenCalls<Calls> calls;
};

// One method of tei.v1, unary and as a stream: a run of type Run answers each of its messages.
// Run::Request and Run::Response are the message types; a Run is made of EncodeDependencies, a
// RequestCall and the response. Thread-safe.
template <typename Run>
class TeiMethod final : public OpenMethod {
 public:
  using Request = typename Run::Request;
  using Response = typename Run::Response;
  using Stream = AnswerStream<Response>;

  // `dependencies` must outlive the method.
  TeiMethod(const Dependencies& dependencies, Method method, const WireRules& rules = {})
      : dependencies_(dependencies), method_(method), schema_(*Request::descriptor(), rules) {}

  grpc::ServerUnaryReactor* Call(IncomingCall& call, grpc::ByteBuffer& request,
                                 Response& response) {
    return UnaryCall::Start(calls_, budgets(), call,
                            [&](std::shared_ptr<CallState> state, UnaryCall::Done done) {
                              Start(ModelOf(call.context, models()), Deadline(call.context),
                                    std::move(state), request, response, std::move(done));
                            });
  }

  Stream* StartStream(IncomingCall& call) {
    auto handler = [this, model = ModelOf(call.context, models()),
                    deadline = Deadline(call.context)](typename Stream::Exchange& exchange,
                                                       typename Stream::Done done) {
      Start(model, deadline, exchange.state, exchange.request, exchange.answer, std::move(done));
    };
    return Stream::Start(streams_, dependencies_.streams, budgets(), call, std::move(handler));
  }

  void CloseAll() override {
    calls_.CloseAll();
    streams_.CloseAll();
  }
  void AwaitClosed(absl::Time deadline) override {
    calls_.AwaitClosed(deadline);
    streams_.AwaitClosed(deadline);
  }
  int CancelSlow(WriteClock::time_point since) override {
    return calls_.CancelSlow(since) + streams_.CancelSlow(since);
  }

 private:
  MemoryBudgets& budgets() const { return dependencies_.encode.requests.budgets; }
  const ModelRegistry& models() const { return dependencies_.encode.requests.models; }

  void Start(absl::StatusOr<std::string> model, absl::Time deadline,
             std::shared_ptr<CallState> state, grpc::ByteBuffer& request, Response& response,
             UnaryCall::Done done) {
    RequestCall call{.method = method_,
                     .message = std::make_unique<ReceivedMessage<Request>>(
                         request, schema_, model.ok() ? *std::move(model) : std::string()),
                     .deadline = deadline,
                     .state = std::move(state),
                     .done = std::move(done)};
    RequestRun::Start(std::make_unique<Run>(dependencies_.encode, std::move(call), response));
  }

  const Dependencies& dependencies_;
  const Method method_;
  const WireSchema schema_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<Stream> streams_;
};

// A service whose methods are TeiMethods, which a derived class holds.
template <typename Proto>
class TeiService : public RawService<Proto> {
 public:
  const std::vector<OpenMethod*>& methods() const { return methods_; }

 protected:
  using RawService<Proto>::RawService;

  template <typename Run>
  void ServeCall(const std::string& name, TeiMethod<Run>& method) {
    using Response = typename Run::Response;
    methods_.push_back(&method);
    this->template ServeUnary<Response>(
        name.c_str(), MethodGroup::kInfer,
        [&method](IncomingCall& call, grpc::ByteBuffer& request, Response& response) {
          return method.Call(call, request, response);
        });
  }
  // The method `name`, and its stream `name`Stream.
  template <typename Run>
  void Serve(const std::string& name, TeiMethod<Run>& method) {
    using Response = typename Run::Response;
    ServeCall(name, method);
    this->template ServeStream<Response>(
        (name + "Stream").c_str(), MethodGroup::kInfer,
        [&method](IncomingCall& call) { return method.StartStream(call); });
  }

  std::vector<OpenMethod*> methods_;
};

}  // namespace attendant::tei
