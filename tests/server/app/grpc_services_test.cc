// SPDX-License-Identifier: Apache-2.0
// The services as a client finds them: by reflection, which lists them, and by their descriptors.
#include "server/app/grpc_services.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "kernels/core/base/regular_file.h"
#include "tests/server/in_process_server.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::ServiceDescriptor;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

void LimitTime(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
}

// The names that reflection lists.
std::vector<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel) {
  const auto stub = grpc::reflection::v1alpha::ServerReflection::NewStub(channel);
  grpc::ClientContext context;
  LimitTime(context);
  const auto stream = stub->ServerReflectionInfo(&context);
  grpc::reflection::v1alpha::ServerReflectionRequest request;
  request.set_list_services("");
  grpc::reflection::v1alpha::ServerReflectionResponse response;
  EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  return names;
}

// A stream of requests without any, open until the server ends it.
class QuietStream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  QuietStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel) {
    LimitTime(context_);
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
    StartCall();
  }

  grpc::Status AwaitEnd() {
    ended_.WaitForNotification();
    return status_;
  }

 private:
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    ended_.Notify();
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::Status status_;
  absl::Notification ended_;
};

// "/SERVICE/METHOD" of every method that takes a stream of requests.
std::vector<std::string> StreamsOf(const std::vector<std::string>& services) {
  std::vector<std::string> methods;
  for (const std::string& name : services) {
    const ServiceDescriptor* service = DescriptorPool::generated_pool()->FindServiceByName(name);
    for (int i = 0; i < service->method_count(); ++i) {
      if (!service->method(i)->client_streaming()) continue;
      methods.push_back(absl::StrCat("/", name, "/", service->method(i)->name()));
    }
  }
  return methods;
}

TEST(GrpcServicesTest, ReflectionListsEachOne) {
  const InProcessServer server;
  EXPECT_THAT(
      ListServices(server.NewChannel()),
      UnorderedElementsAre("attendant.v1.Attention", "attendant.v1.Encoder",
                           "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
                           "inference.GRPCInferenceService", "tei.v1.Embed", "tei.v1.Info",
                           "tei.v1.Predict", "tei.v1.Rerank", "tei.v1.Tokenize"));
}

TEST(GrpcServicesTest, WhatTheFlagsSwitchOffIsNotThere) {
  InProcessServer::Options options;
  options.flags.attention_service = false;
  const InProcessServer server(options);
  const auto channel = server.NewChannel();
  EXPECT_THAT(ListServices(channel), Not(Contains("attendant.v1.Attention")));
  QuietStream attend(channel, "/attendant.v1.Attention/AttendStream");
  EXPECT_EQ(attend.AwaitEnd().error_code(), grpc::StatusCode::UNIMPLEMENTED);

  options.flags.reflection = false;
  const InProcessServer silent(options);
  QuietStream reflect(silent.NewChannel(),
                      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  EXPECT_EQ(reflect.AwaitEnd().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(GrpcServicesTest, CallsOfUnknownMethodsAreCountedAndLogged) {
  const TempDirectory directory;
  WriteFile(directory / "keys", "0123456789abcdef search infer\n");
  InProcessServer::Options options;
  options.flags.access.api_keys = directory / "keys";
  options.flags.access.access_log = directory / "access.log";
  {
    const InProcessServer server(options);
    const std::string series = R"(attendant_refused_total{reason="unknown_method"})";
    EXPECT_EQ(server.Metric(series), 0);
    for (const char* method : {"/attendant.v1.Encoder/Decode", "/nobody"}) {
      QuietStream stream(server.NewChannel(), method);
      const grpc::Status status = stream.AwaitEnd();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
      EXPECT_THAT(status.error_message(), HasSubstr("there is no method "));
    }
    EXPECT_EQ(server.Metric(series), 2);
  }
  EXPECT_THAT(*ReadTextFile(directory / "access.log", 1 << 20),
              HasSubstr(R"("method":"attendant.v1.Encoder/Decode","code":"UNIMPLEMENTED")"));
}

TEST(GrpcServicesTest, ADrainEndsTheStreamsOfEachOne) {
  const TempDirectory directory;
  InProcessServer::Options options;
  options.flags.access.access_log = directory / "access.log";
  {
    InProcessServer server(options);
    server.AwaitReady();
    const std::vector<std::string> methods = StreamsOf(ListServices(server.NewChannel()));
    EXPECT_GT(methods.size(), 10u);
    const auto channel = server.NewChannel();  // which has no other call
    std::deque<QuietStream> streams;
    for (const std::string& method : methods) streams.emplace_back(channel, method);
    server.AwaitOpenCalls(methods.size());  // those that come after the drain are not logged
    server.RequestStop();
    EXPECT_TRUE(server.AwaitStopped().ok());
    for (size_t i = 0; i < methods.size(); ++i) {
      EXPECT_EQ(streams[i].AwaitEnd().error_code(), grpc::StatusCode::UNAVAILABLE) << methods[i];
    }
  }
  // Its messages are one request.
  EXPECT_THAT(*ReadTextFile(directory / "access.log", 1 << 20),
              HasSubstr(R"("method":"tei.v1.Rerank/RerankStream","code":"UNAVAILABLE")"));
}

}  // namespace
}  // namespace attendant
