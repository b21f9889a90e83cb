// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/health_service.h"

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
    stub_ = grpc::health::v1::Health::NewStub(server_->InProcessChannel({}));
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
