// SPDX-License-Identifier: Apache-2.0
// The server over a CUDA library that does as it is told: choice of the back end, metrics, and what
// becomes of a model whose device is lost.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/app/app.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"
#include "tests/support/fake_cuda.h"

namespace attendant {
namespace {

using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::Not;

class CudaServerTest : public testing::Test {
 protected:
  CudaServerTest() {
    for (const char* name : {"tiny", "other"}) WriteTinyModel(directory_ / name);
    void* library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    levers_ = reinterpret_cast<FakeCudaLeversFunction>(dlsym(library, FAKE_CUDA_LEVERS_SYMBOL))();
    saved_ = *levers_;
    flags_.listen = flags_.http_listen = "127.0.0.1:0";
    flags_.cuda_library = FAKE_CUDA_LIBRARY;
  }
  ~CudaServerTest() override {
    if (app_ != nullptr) {
      app_->RequestStop();
      run_.join();
      app_.reset();
    }
    EXPECT_EQ(levers_->sessions, 0);
    EXPECT_EQ(levers_->models, 0);
    *levers_ = saved_;
  }

  absl::Status Start(const std::vector<std::string>& names = {"tiny"}) {
    ModelSources sources;
    for (const std::string& name : names) sources.fixed.push_back({name, directory_ / name});
    absl::StatusOr<std::unique_ptr<App>> app = App::Start(flags_, sources);
    if (!app.ok()) return app.status();
    app_ = *std::move(app);
    run_ = std::thread([this] { run_status_ = app_->Run(); });
    const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", app_->grpc_port()),
                                             grpc::InsecureChannelCredentials());
    encoder_ = v1::Encoder::NewStub(channel);
    health_ = grpc::health::v1::Health::NewStub(channel);
    for (const std::string& name : names) AwaitHealth(HealthCheckResponse::SERVING, name);
    return absl::OkStatus();
  }

  void AwaitHealth(HealthCheckResponse::ServingStatus wanted, const std::string& name = "tiny") {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(name);
    const auto watch = health_->Watch(&context, request);
    HealthCheckResponse response;
    while (watch->Read(&response)) {
      if (response.status() == wanted) return context.TryCancel();
    }
    ADD_FAILURE() << "health never became " << wanted;
  }

  v1::ModelInfo Info() {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    EXPECT_TRUE(encoder_->ListModels(&context, {}, &response).ok());
    return response.models(0);
  }

  TempDirectory directory_;
  FakeCudaLevers* levers_;
  FakeCudaLevers saved_;
  ServerFlags flags_;
  std::unique_ptr<App> app_;
  std::thread run_;
  absl::Status run_status_;
  std::unique_ptr<v1::Encoder::Stub> encoder_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

TEST_F(CudaServerTest, AutoServesOnTheGpu) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Info().backend(), "cuda");
  EXPECT_EQ(Info().isa(), "sm_90");
  EXPECT_EQ(Info().dtype(), "bf16");
  EXPECT_EQ(levers_->sessions, 4) << "two for each of two devices";
  EXPECT_TRUE(CallHello(*encoder_).ok());
  const std::string metrics = app_->metrics().Scrape();
  EXPECT_THAT(metrics, HasSubstr("attendant_device_info{device=\"1\",name=\"Fake 1\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("attendant_device_memory_bytes{device=\"0\",kind=\"total\"}"));
  EXPECT_THAT(metrics,
              HasSubstr("attendant_device_kernel_seconds_total{model=\"tiny\",device=\"0\","
                        "group=\"attention\"} 6"));
}

TEST_F(CudaServerTest, ReplicasAndDevicesAreTheUsers) {
  flags_.cuda_devices = "1";
  flags_.replicas = 3;
  flags_.dtype = "f16";
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(levers_->session_devices[0], 0);
  EXPECT_EQ(levers_->session_devices[1], 3);
  EXPECT_EQ(Info().dtype(), "f16");
}

TEST_F(CudaServerTest, AutoServesOnTheCpuWhatTheGpuLacks) {
  levers_->dtypes = 1u << ATTENDANT_CUDA_F32;
  flags_.dtype = "f32";
  levers_->devices = 0;
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Info().backend(), "cpu");
  EXPECT_TRUE(CallHello(*encoder_).ok());
}

TEST_F(CudaServerTest, CudaThatCannotBeHadIsAnErrorAtStart) {
  flags_.backend = "cuda";
  levers_->devices = 0;
  const absl::Status status = Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--backend cuda"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no CUDA device"));
}

TEST_F(CudaServerTest, AFailedBatchFailsItsMembersOnly) {
  ASSERT_TRUE(Start().ok());
  levers_->run = {.code = ATTENDANT_CUDA_INTERNAL, .message = "a kernel failed"};
  EXPECT_EQ(CallHello(*encoder_).error_code(), grpc::StatusCode::INTERNAL);
  levers_->run = {};
  EXPECT_TRUE(CallHello(*encoder_).ok());
}

TEST_F(CudaServerTest, ALostDeviceIsNotServingAndTheProcessLives) {
  ASSERT_TRUE(Start().ok());
  levers_->run = {.code = ATTENDANT_CUDA_DEVICE_LOST, .message = "uncorrectable ECC error"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(CallHello(*encoder_).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  AwaitHealth(HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Info().state(), v1::MODEL_STATE_FAILED);
  EXPECT_THAT(Info().error(), HasSubstr("uncorrectable ECC error"));
  const grpc::Status status = CallHello(*encoder_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("has lost what it computed on"));
}

// No request tells of the other: it would go on to be sent requests.
TEST_F(CudaServerTest, ModelsOfALostDeviceAreLostTogether) {
  ASSERT_TRUE(Start({"tiny", "other"}).ok());
  levers_->run = {.code = ATTENDANT_CUDA_DEVICE_LOST, .message = "uncorrectable ECC error"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(CallHello(*encoder_).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  AwaitHealth(HealthCheckResponse::NOT_SERVING, "other");
  AwaitHealth(HealthCheckResponse::NOT_SERVING, "");
  EXPECT_THAT(app_->metrics().Scrape(),
              Not(HasSubstr("attendant_model_loaded_info{model=\"other\"")));
}

}  // namespace
}  // namespace attendant
