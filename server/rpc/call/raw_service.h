// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/scan/received_message.h"

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
// memory before it is scanned. A derived class gives every method a handler in its constructor, by
// the method's name. Handlers may take the bytes; they run on gRPC's callback threads.
template <typename Proto>
class RawService : public Proto::Service {
 protected:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  template <typename Response>
  void ServeUnary(const char* method,
                  std::function<Unary*(Context&, grpc::ByteBuffer&, Response&)> handler) {
    auto raw = [handler = std::move(handler)](Context* context, const grpc::ByteBuffer* request,
                                              Response* response) {
      return handler(*context, Own(request), *response);
    };
    Mark<grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, Response>>(method, std::move(raw));
  }

  // A method with a small request and an answer that needs no waiting.
  template <typename Request, typename Response>
  void ServeSmall(const char* method,
                  std::function<absl::Status(const Request&, Response&)> answer) {
    ServeUnary<Response>(method,
                         [answer = std::move(answer)](Context& context, grpc::ByteBuffer& bytes,
                                                      Response& response) {
                           Request request;
                           absl::Status status = ReadSmallMessage(bytes, request);
                           if (status.ok()) status = answer(request, response);
                           return AnswerAtOnce(context, status);
                         });
  }

  template <typename Answer>
  using AnswerWriter = grpc::ServerWriteReactor<Answer>;
  template <typename Answer>
  void ServeWriter(const char* method,
                   std::function<AnswerWriter<Answer>*(Context&, grpc::ByteBuffer&)> handler) {
    auto raw = [handler = std::move(handler)](Context* context, const grpc::ByteBuffer* request) {
      return handler(*context, Own(request));
    };
    Mark<grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer, Answer>>(method,
                                                                                   std::move(raw));
  }

  template <typename Answer>
  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, Answer>;
  template <typename Answer>
  void ServeStream(const char* method, std::function<Stream<Answer>*(Context&)> handler) {
    auto raw = [handler = std::move(handler)](Context* context) { return handler(*context); };
    Mark<grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Answer>>(method, std::move(raw));
  }

 private:
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
};

}  // namespace attendant
