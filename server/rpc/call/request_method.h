// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/limits/limits.h"
#include "server/metrics/server_metrics.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/requests/request_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/unary_call.h"
#include "server/rpc/scan/received_message.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// One method of a service, unary and as a stream: a run answers each of its messages. On the stream
// a response lies in an Answer, or is one. RawService serves it. Thread-safe.
template <typename RequestType, typename ResponseType, typename AnswerType = ResponseType>
class RequestMethod : public OpenMethod {
 public:
  using Request = RequestType;
  using Response = ResponseType;
  using Answer = AnswerType;
  using Stream = AnswerStream<Answer>;

  struct Options {
    Method unary, stream;  // as metrics count them
    WireRules rules{};
    Response& (*response_of)(Answer& answer);
    typename Stream::Finisher finisher = nullptr;
    // The model of a call whose messages cannot name one. Null: they do.
    std::function<std::string(const IncomingCall& call)> model_of = nullptr;
    // Starts the run of a ReceivedMessage<Request>.
    std::function<void(RequestCall call, Response& response)> start;
  };

  // `budgets` must outlive the method.
  RequestMethod(MemoryBudgets& budgets, const StreamLimits& limits, Options options)
      : budgets_(budgets),
        limits_(limits),
        options_(std::move(options)),
        schema_(*Request::descriptor(), options_.rules) {}

  void Call(const IncomingCall& call, grpc::ByteBuffer& request, Response& response,
            std::shared_ptr<CallState> state, UnaryCall::Done done) {
    Start({.method = options_.unary,
           .message = Receive(request, ModelOf(call)),
           .deadline = Deadline(call.context),
           .state = std::move(state),
           .done = std::move(done)},
          response);
  }

  Stream* StartStream(IncomingCall& call) {
    auto handler = [this, model = ModelOf(call), deadline = Deadline(call.context)](
                       typename Stream::Exchange& exchange, typename Stream::Done done) {
      Start({.method = options_.stream,
             .message = Receive(exchange.request, model),
             .deadline = deadline,
             .state = exchange.state,
             .done = std::move(done)},
            options_.response_of(exchange.answer));
    };
    return Stream::Start(streams_, limits_, budgets_, call, std::move(handler), options_.finisher);
  }

  void CloseAll() final { streams_.CloseAll(); }
  void AwaitClosed(absl::Time deadline) final { streams_.AwaitClosed(deadline); }
  int CancelSlow(WriteClock::time_point since) final { return streams_.CancelSlow(since); }

 private:
  std::string ModelOf(const IncomingCall& call) const {
    return options_.model_of ? options_.model_of(call) : std::string();
  }
  std::unique_ptr<RequestMessage> Receive(grpc::ByteBuffer& bytes, std::string model) const {
    return std::make_unique<ReceivedMessage<Request>>(bytes, schema_, std::move(model));
  }
  void Start(RequestCall call, Response& response) { options_.start(std::move(call), response); }

  MemoryBudgets& budgets_;
  const StreamLimits limits_;
  const Options options_;
  const WireSchema schema_;
  OpenCalls<Stream> streams_;
};

}  // namespace attendant
