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
#include "server/rpc/scan/received_message.h"
#include "server/threads/steady_time.h"

namespace attendant {

// Requests of methods that take no tensors have at most so many bytes.
inline constexpr int64_t kMaxSmallMessageBytes = 64 << 10;

// INVALID_ARGUMENT for more than kMaxSmallMessageBytes, and what ScanWire and the parser refuse.
template <typename Request>
absl::Status ReadSmallMessage(grpc::ByteBuffer& bytes, Request& request) {
  if (bytes.Length() > static_cast<size_t>(kMaxSmallMessageBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(Request::descriptor()->full_name(), " has ",
                                                   bytes.Length(), " bytes, the limit is ",
                                                   kMaxSmallMessageBytes));
  }
  WireSummary summary;
  absl::Status status = ScanBuffer(PlainSchema<Request>(), bytes, summary);
  return status.ok() ? ParseBuffer(bytes, request) : status;
}

// The generated service `Proto` with requests as bytes: gRPC parses none, so that no message takes
// memory before it is scanned. A derived class gives every method a group and a handler in its
// constructor, by the method's name. Every call passes the gate first: its handler sees only calls
// that may go on. Handlers may take the bytes; they run on gRPC's callback threads.
template <typename Proto>
class RawService : public Proto::Service {
 public:
  // For SlowReaders, and to be closed before the server stops: streams end with UNAVAILABLE once
  // all requests that they have read are answered, new streams at once.
  const std::vector<OpenMethod*>& open_methods() const { return open_methods_; }

 protected:
  using Unary = grpc::ServerUnaryReactor;
  using Reader = grpc::ServerReadReactor<grpc::ByteBuffer>;
  template <typename Answer>
  using AnswerWriter = grpc::ServerWriteReactor<Answer>;
  template <typename Answer>
  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, Answer>;

  // Both must outlive the service. Its streams hold memory of `budgets`.
  RawService(CallGate& gate, MemoryBudgets& budgets) : gate_(gate), budgets_(budgets) {
    AddOpenMethod(ended_);
  }

  template <typename Response>
  void ServeUnary(const char* method, MethodGroup group,
                  std::function<Unary*(IncomingCall&, grpc::ByteBuffer&, Response&)> handler) {
    auto raw = [this, &rpc = AddMethod(method, group), handler = std::move(handler)](
                   Context* context, const grpc::ByteBuffer* request, Response* response) {
      CallGate::Entry entry = EnterGate(gate_, rpc, *context);
      RequireMessage(*request, *context, entry);
      IncomingCall call{*context, entry.call, gate_};
      if (entry.status.ok()) return handler(call, Own(request), *response);
      Own(request).Clear();  // a client that reads no answer shall not hold it
      return Refuse<Unary>(call, entry.status);
    };
    Mark<grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, Response>>(method, std::move(raw));
  }

  // The methods `name` and, where that is not null, `stream_name`, which a RequestMethod answers.
  template <typename Handler>
  void ServeRequests(const char* name, const char* stream_name, Handler& handler) {
    using Response = typename Handler::Response;
    AddOpenMethod(handler);
    ServeUnary<Response>(
        name, MethodGroup::kInfer,
        [&handler](IncomingCall& call, grpc::ByteBuffer& request, Response& response) {
          return handler.Call(call, request, response);
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
        [this, answer = std::move(answer)](IncomingCall& call, grpc::ByteBuffer& bytes,
                                           Response& response) {
          const absl::Time arrival = SteadyNow();
          const auto request_bytes = static_cast<int64_t>(bytes.Length());
          Request request;
          absl::Status status = ReadSmall(bytes, request);
          bytes.Clear();
          ByteBudget::Share memory;
          if (status.ok()) status = HoldAnswer(budgets_, call, kRequestBytes, memory);
          if (status.ok()) status = answer(call, request, response);
          if (status.ok()) status = HoldAnswer(budgets_, call, response.ByteSizeLong(), memory);
          if (!status.ok()) response.Clear();
          gate_.Ended(*call.info, {.code = status.code(),
                                   .request_bytes = request_bytes,
                                   .response_bytes = static_cast<int64_t>(response.ByteSizeLong()),
                                   .total = SteadyNow() - arrival});
          return new EndedCallOf<Unary>(ended_.calls, call, EndOf(status, *call.info, call.context),
                                        std::move(memory));
        });
  }

  template <typename Answer>
  void ServeWriter(const char* method, MethodGroup group,
                   std::function<AnswerWriter<Answer>*(IncomingCall&, grpc::ByteBuffer&)> handler) {
    auto raw = [this, &rpc = AddMethod(method, group), handler = std::move(handler)](
                   Context* context, const grpc::ByteBuffer* request) {
      CallGate::Entry entry = EnterStream(gate_, budgets_, rpc, *context);
      RequireMessage(*request, *context, entry);
      IncomingCall call{*context, entry.call, gate_};
      return entry.status.ok() ? handler(call, Own(request))
                               : Refuse<AnswerWriter<Answer>>(call, entry.status);
    };
    Mark<grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer, Answer>>(method,
                                                                                   std::move(raw));
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
    auto raw = [this, &rpc = AddMethod(method, group, /*streams=*/true),
                handler = std::move(handler)](Context* context) {
      const CallGate::Entry entry = EnterStream(gate_, budgets_, rpc, *context);
      IncomingCall call{*context, entry.call, gate_};
      return entry.status.ok() ? handler(call) : Refuse<Stream<Answer>>(call, entry.status);
    };
    Mark<grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Answer>>(method, std::move(raw));
  }

  // One of open_methods().
  void AddOpenMethod(OpenMethod& method) { open_methods_.push_back(&method); }

  // As ReadSmallMessage; counts what it refuses.
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

  // INVALID_ARGUMENT, counted and logged, for a call that ended without a whole message: gRPC hands
  // it over as if it had an empty one.
  void RequireMessage(const grpc::ByteBuffer& request, Context& context, CallGate::Entry& entry) {
    if (!entry.status.ok() || request.Valid()) return;
    entry.status = absl::InvalidArgumentError("the call has no whole message");
    gate_.CountMalformed();
    gate_.Ended(*entry.call, {.code = entry.status.code()});
    AddCallMetadata(*entry.call, /*answers=*/false, context);
  }

  // Ends a call that the gate has refused, or for whose stream there is no memory.
  template <typename Reactor>
  Reactor* Refuse(const IncomingCall& call, const absl::Status& status) {
    return new EndedCallOf<Reactor>(ended_.calls, call, ToGrpcStatus(status));
  }

  // gRPC hands out what it owns as const. Its own message holder does not have it so.
  static grpc::ByteBuffer& Own(const grpc::ByteBuffer* bytes) {
    return *const_cast<grpc::ByteBuffer*>(bytes);
  }

  // As the generated WithRawCallbackMethod_* do. The index of a method is its place in the proto.
  template <typename Handler, typename Function>
  void Mark(const char* method, Function function) {
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        Proto::service_full_name());
    ATTENDANT_CHECK(service != nullptr);
    const auto* descriptor = service->FindMethodByName(method);
    ATTENDANT_CHECK(descriptor != nullptr);
    grpc::Service::MarkMethodRawCallback(descriptor->index(), new Handler(std::move(function)));
  }

  CallGate& gate_;
  MemoryBudgets& budgets_;
  std::deque<CallMethod> methods_;  // in place: calls refer to them
  std::vector<OpenMethod*> open_methods_;
  OpenMethodOf<EndedCall> ended_;
};

}  // namespace attendant
