// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/health_service.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

namespace attendant {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthServiceTest : public testing::Test {
 protected:
  HealthServiceTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
    stub_ = grpc::health::v1::Health::NewStub(channel_);
  }
  ~HealthServiceTest() override {
    service_.CloseWatches();
    server_->Shutdown();
  }

  HealthCheckResponse::ServingStatus Check(const std::string& name) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(name);
    HealthCheckResponse response;
    EXPECT_TRUE(stub_->Check(&context, request, &response).ok());
    return response.status();
  }

  ServerMetrics metrics_{"1.2.3"};
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  HealthService service_{gate_, budgets_, {"model"}};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
};

TEST_F(HealthServiceTest, ADrainIsFinal) {
  EXPECT_EQ(Check("model"), HealthCheckResponse::NOT_SERVING);
  service_.Set({{"", false}, {"model", true}});
  EXPECT_EQ(Check("model"), HealthCheckResponse::SERVING);
  service_.Drain();
  service_.Set({{"", true}, {"model", true}});
  EXPECT_EQ(Check("model"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, ALongNameIsUnknownAlsoWhereItsBeginningIsServed) {
  const std::string served(128, 'x');  // as long as names get
  service_.Set({{served, true}});
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(served + "x");
  HealthCheckResponse response;
  const auto watch = stub_->Watch(&context, request);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
}

// As a client that ends its call after the headers. Cancels a call that is answered.
grpc::Status CallWithoutMessage(const std::shared_ptr<grpc::Channel>& channel,
                                const std::string& method) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  const auto ok = [&queue] {
    void* tag = nullptr;
    bool succeeded = false;
    return queue.Next(&tag, &succeeded) && succeeded;
  };
  call->StartCall(nullptr);
  EXPECT_TRUE(ok());
  call->WritesDone(nullptr);
  EXPECT_TRUE(ok());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  if (ok()) context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(ok());
  return status;
}

TEST_F(HealthServiceTest, ACallWithoutAMessageIsNoEmptyRequest) {
  for (const char* method : {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}) {
    const grpc::Status status = CallWithoutMessage(channel_, method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(status.error_message(), "the call has no whole message");
  }
  EXPECT_THAT(metrics_.Scrape(),
              testing::HasSubstr("attendant_refused_total{reason=\"message\"} 2"));
}

TEST_F(HealthServiceTest, AWatchSeesEveryChangeAndTheEnd) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("model");
  const auto watch = stub_->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  service_.Set({{"", false}, {"model", true}});
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  service_.Set({{"", false}});
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  service_.Set({{"", false}, {"model", true}});
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  service_.Drain();
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  service_.CloseWatches();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace attendant
