// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/reference/reference_backend.h"
#include "server/models/model_loader.h"
#include "server/rpc/kserve_service.h"
#include "server/threads/task_pool.h"

namespace attendant {

using inference::ModelInferRequest;
using inference::ModelInferResponse;

inline constexpr int64_t kHidden = 48;
inline constexpr int kMaxStreamRequests = 16;

inline ModelOptions Options() {
  ModelOptions options;
  options.dtype = "f32";
  options.batcher = {.max_batch_tokens = 256,
                     .max_batch_sequences = 16,
                     .max_queued_tokens = 1 << 16,
                     .max_queued_requests = 1 << 12,
                     .max_queue_delay = absl::ZeroDuration()};
  return options;
}

// The service in process, on a loopback port, with a tiny checkpoint that has no tokenizer.
class KServeServiceTest : public testing::Test {
 protected:
  explicit KServeServiceTest(bool shared_memory = false)
      : metrics_("test"),
        completions_(2, "completion"),
        registry_(CheckpointLoader(*backend_, Options()), metrics_,
                  [this](absl::AnyInvocable<void()> f) { completions_.Post(std::move(f)); },
                  {.control = ModelControl::kExplicit}),
        service_(dependencies_, "1.2.3", {.max_requests = kMaxStreamRequests}, shared_memory) {}

  void SetUp() override {
    registry_.SetListener([this](const ModelStatus& status, ModelNews) {
      const bool ended = status.state == ModelState::kReady || status.state == ModelState::kFailed;
      if (ended && !has_loaded_.exchange(true)) loaded_.set_value(status.state);
    });
    registry_.SetModels({{"tiny", "tests/golden/encoder/tiny_gelu"}});
    registry_.StartLoading();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
    ASSERT_EQ(loaded_.get_future().get(), ModelState::kReady) << registry_.Ready();
  }

  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown();
    registry_.Drain(absl::InfiniteFuture());
  }

  grpc::Status Infer(const ModelInferRequest& request, ModelInferResponse& response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, &response);
  }
  ModelInferResponse Infer(const ModelInferRequest& request) {
    ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  inference::ModelStatistics Statistics(const std::string& name) {
    grpc::ClientContext context;
    inference::ModelStatisticsRequest request;
    request.set_name(name);
    inference::ModelStatisticsResponse response;
    EXPECT_TRUE(stub_->ModelStatistics(&context, request, &response).ok());
    return response.model_stats_size() == 1 ? response.model_stats(0)
                                            : inference::ModelStatistics();
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
  std::promise<ModelState> loaded_;
  std::atomic<bool> has_loaded_{false};
  std::atomic<int> decoded_apart_{0};  // requests that another thread than gRPC's has decoded
  ServerMetrics metrics_;
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  TaskPool completions_;  // ends its tasks before what their requests hold
  ModelWaits waits_;
  ModelRegistry registry_;
  const RequestDependencies requests_{registry_,
                                      metrics_,
                                      budgets_,
                                      gate_,
                                      waits_,
                                      [this](absl::AnyInvocable<void()> f) {
                                        ++decoded_apart_;
                                        completions_.Post(std::move(f));
                                      },
                                      completions_.large_executor()};
  const EncodeDependencies dependencies_{requests_, {}};
  KServeService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

inline void AddInts(ModelInferRequest& request, const std::string& name, int64_t batch,
                    const std::vector<int64_t>& values) {
  auto& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype("INT64");
  input.add_shape(batch);
  input.add_shape(static_cast<int64_t>(values.size()) / batch);
  request.add_raw_input_contents(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(int64_t));
}

inline ModelInferRequest Request(const std::string& model, int64_t batch,
                                 const std::vector<int64_t>& ids) {
  ModelInferRequest request;
  request.set_model_name(model);
  AddInts(request, "input_ids", batch, ids);
  return request;
}

inline std::vector<float> Values(const ModelInferResponse& response) {
  if (response.raw_output_contents_size() != 1) return {};
  std::vector<float> values(response.raw_output_contents(0).size() / sizeof(float));
  std::memcpy(values.data(), response.raw_output_contents(0).data(), values.size() * sizeof(float));
  return values;
}

inline std::vector<float> Rows(const std::vector<float>& values, int64_t first, int64_t count) {
  return {values.begin() + first * kHidden, values.begin() + (first + count) * kHidden};
}

}  // namespace attendant
