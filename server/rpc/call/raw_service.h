// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/check.h"
#include "server/access/call_gate.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/ended_call.h"
#include "server/rpc/call/reading_call.h"
#include "server/rpc/call/small_message.h"
#include "server/rpc/call/unary_call.h"
#include "server/threads/steady_time.h"

namespace attendant {

// The generated service `Proto` with requests as bytes: gRPC parses none, so that no message takes
// memory before it is scanned. A derived class gives every method a group and a handler in its
// constructor, by the method's name. Every call passes the gate first: its handler sees only calls
// that may go on. Handlers may take the bytes; they run on gRPC's callback threads.
template <typename Proto>
class RawService : public Proto::Service {
 public:
  // For SlowReaders, and to be closed before the server stops: streams end with UNAVAILABLE once
  // all requests that they have read are answered; new calls, and those without a message, at once.
  const std::vector<OpenMethod*>& open_methods() const { return open_methods_; }

 protected:
  using Reader = grpc::ServerReadReactor<grpc::ByteBuffer>;
  template <typename Answer>
  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, Answer>;

  // Both must outlive the service. Its streams hold memory of `budgets`.
  RawService(CallGate& gate, MemoryBudgets& budgets) : gate_(gate), budgets_(budgets) {
    AddOpenMethod(ended_);
    AddOpenMethod(unary_);
  }

  template <typename Response>
  using UnaryHandler =
      std::function<void(const IncomingCall& call, grpc::ByteBuffer& message, Response& response,
                         std::shared_ptr<CallState> state, UnaryCall::Done done)>;

  // `handler` is as UnaryCall::Handler.
  template <typename Response>
  void ServeUnary(const char* method, MethodGroup group, UnaryHandler<Response> handler) {
    auto raw = [this, &rpc = AddMethod(method, group),
                handler = std::make_shared<const UnaryHandler<Response>>(std::move(handler))](
                   Context* context, Response* response) -> Reader* {
      const CallGate::Entry entry = EnterGate(gate_, rpc, *context);
      const IncomingCall incoming{*context, entry.call, gate_};
      if (!entry.status.ok()) return Refuse<Reader>(incoming, entry.status);
      return UnaryCall::Start(
          unary_.calls, budgets_, incoming,
          [&handle = *handler, response](const IncomingCall& call, grpc::ByteBuffer& message,
                                         std::shared_ptr<CallState> state, UnaryCall::Done done) {
            handle(call, message, *response, std::move(state), std::move(done));
          });
    };
    MarkFromHead<grpc::internal::CallbackClientStreamingHandler<grpc::ByteBuffer, Response>>(
        method, std::move(raw));
  }

  // The methods `name` and, where that is not null, `stream_name`, which a RequestMethod answers.
  template <typename Handler>
  void ServeRequests(const char* name, const char* stream_name, Handler& handler) {
    using Response = typename Handler::Response;
    AddOpenMethod(handler);
    ServeUnary<Response>(
        name, MethodGroup::kInfer,
        [&handler](const IncomingCall& call, grpc::ByteBuffer& request, Response& response,
                   std::shared_ptr<CallState> state, UnaryCall::Done done) {
          handler.Call(call, request, response, std::move(state), std::move(done));
        });
    if (stream_name == nullptr) return;
    ServeStream<typename Handler::Answer>(
        stream_name, MethodGroup::kInfer,
        [&handler](IncomingCall& call) { return handler.StartStream(call); });
  }

  // A method with a small request and an answer that needs no waiting.
  template <typename Request, typename Response>
  void ServeSmall(const char* method, MethodGroup group,
                  std::function<absl::Status(const Request&, Response&)> answer) {
    ServeSmallCall<Request, Response>(
        method, group,
        [answer = std::move(answer)](const IncomingCall&, const Request& request,
                                     Response& response) { return answer(request, response); });
  }

  // The same for an answer that depends on the call's metadata.
  template <typename Request, typename Response>
  void ServeSmallCall(
      const char* method, MethodGroup group,
      std::function<absl::Status(const IncomingCall&, const Request&, Response&)> answer) {
    ServeUnary<Response>(
        method, group,
        [this, answer = std::move(answer)](
            const IncomingCall& call, grpc::ByteBuffer& bytes, Response& response,
            const std::shared_ptr<CallState>& state, UnaryCall::Done done) {
          const absl::Time arrival = SteadyNow();
          const auto request_bytes = static_cast<int64_t>(bytes.Length());
          Request request;
          absl::Status status = ReadSmall(bytes, request);
          bytes.Clear();
          if (status.ok()) status = HoldAnswer(*state, 0);
          if (status.ok()) status = answer(call, request, response);
          const size_t answer_bytes = status.ok() ? response.ByteSizeLong() : 0;
          if (answer_bytes > 0) status = HoldAnswer(*state, answer_bytes);
          if (!status.ok()) response.Clear();
          gate_.Ended(*call.info, {.code = status.code(),
                                   .request_bytes = request_bytes,
                                   .response_bytes = static_cast<int64_t>(response.ByteSizeLong()),
                                   .total = SteadyNow() - arrival});
          done(status);
        });
  }

  // One request, many answers. The handler's reactor reads the request.
  template <typename Answer>
  void ServeWriter(const char* method, MethodGroup group,
                   std::function<Stream<Answer>*(IncomingCall&)> handler) {
    MarkFromHead<grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Answer>>(
        method, StreamOf<Answer>(AddMethod(method, group), std::move(handler)));
  }

  // Requests as a stream, one answer.
  template <typename Response>
  void ServeReader(const char* method, MethodGroup group,
                   std::function<Reader*(IncomingCall&, Response&)> handler) {
    auto raw = [this, &rpc = AddMethod(method, group), handler = std::move(handler)](
                   Context* context, Response* response) -> Reader* {
      const CallGate::Entry entry = EnterStream(gate_, budgets_, rpc, *context);
      IncomingCall call{*context, entry.call, gate_};
      return entry.status.ok() ? handler(call, *response) : Refuse<Reader>(call, entry.status);
    };
    Mark<grpc::internal::CallbackClientStreamingHandler<grpc::ByteBuffer, Response>>(
        method, std::move(raw));
  }

  template <typename Answer>
  void ServeStream(const char* method, MethodGroup group,
                   std::function<Stream<Answer>*(IncomingCall&)> handler) {
    Mark<grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Answer>>(
        method, StreamOf<Answer>(AddMethod(method, group, /*streams=*/true), std::move(handler)));
  }

  // One of open_methods().
  void AddOpenMethod(OpenMethod& method) { open_methods_.push_back(&method); }

  // Parses a small message as ReadSmallMessage does, and counts a message that it refuses.
  template <typename Request>
  absl::Status ReadSmall(grpc::ByteBuffer& bytes, Request& request) {
    absl::Status status = ReadSmallMessage(bytes, request);
    if (!status.ok()) gate_.CountMalformed();
    return status;
  }

 private:
  using Context = grpc::CallbackServerContext;

  const CallMethod& AddMethod(const char* method, MethodGroup group, bool streams = false) {
    return methods_.emplace_back(
        CallMethod{.name = absl::StrCat(Proto::service_full_name(), "/", method),
                   .group = group,
                   .streams = streams});
  }

  // Ends a call that the gate has refused, or for whose stream there is no memory.
  template <typename Reactor>
  Reactor* Refuse(const IncomingCall& call, const absl::Status& status) {
    return new EndedCallOf<Reactor>(ended_.calls, budgets_, call, ToGrpcStatus(status));
  }

  template <typename Answer>
  auto StreamOf(const CallMethod& rpc, std::function<Stream<Answer>*(IncomingCall&)> handler) {
    return [this, &rpc, handler = std::move(handler)](Context* context) {
      const CallGate::Entry entry = EnterStream(gate_, budgets_, rpc, *context);
      IncomingCall call{*context, entry.call, gate_};
      return entry.status.ok() ? handler(call) : Refuse<Stream<Answer>>(call, entry.status);
    };
  }

  // Holds the memory of an answer of so many bytes in all. RESOURCE_EXHAUSTED: it does not fit.
  // Such a call may come again, so it must have had no effect yet. Probes get their answers all the
  // same.
  static absl::Status HoldAnswer(CallState& state, size_t bytes) {
    if (state.call().method.group == MethodGroup::kOpen) return absl::OkStatus();
    return state.AcquireResponse(kRequestBytes + static_cast<int64_t>(bytes));
  }

  // The index of a method is its place in the proto.
  static int IndexOf(const char* method) {
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        Proto::service_full_name());
    ATTENDANT_CHECK(service != nullptr);
    const auto* descriptor = service->FindMethodByName(method);
    ATTENDANT_CHECK(descriptor != nullptr);
    return descriptor->index();
  }

  // As the generated WithRawCallbackMethod_* do.
  template <typename Handler, typename Function>
  void Mark(const char* method, Function function) {
    grpc::Service::MarkMethodRawCallback(IndexOf(method), new Handler(std::move(function)));
  }

  // The same for a method with one message. gRPC takes it for a stream, on which it reads nothing
  // by itself; on the wire nothing differs. Of the two handlers the second replaces the first.
  template <typename Handler, typename Function>
  void MarkFromHead(const char* method, Function function) {
    const int index = IndexOf(method);
    grpc::Service::MarkMethodStreamed(index, new Handler(function));
    grpc::Service::MarkMethodRawCallback(index, new Handler(std::move(function)));
  }

  CallGate& gate_;
  MemoryBudgets& budgets_;
  std::deque<CallMethod> methods_;  // in place: calls refer to them
  std::vector<OpenMethod*> open_methods_;
  OpenMethodOf<EndedCall> ended_;
  OpenMethodOf<ReadingCall> unary_;
};

}  // namespace attendant
