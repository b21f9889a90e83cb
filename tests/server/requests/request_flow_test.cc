// SPDX-License-Identifier: Apache-2.0
// What a request says and what it takes reach the right place, through every protocol: priority,
// deadline, times, counts, exact limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kHeld{60};

void SetDeadline(grpc::ClientContext& context, std::chrono::milliseconds time) {
  context.set_deadline(std::chrono::system_clock::now() + time);
}

inference::ModelInferRequest InferRequest() {
  inference::ModelInferRequest request;
  request.set_model_name("tiny");
  auto& input = *request.add_inputs();
  input.set_name("text");
  input.set_datatype("BYTES");
  input.add_shape(1);
  input.add_shape(1);
  input.mutable_contents()->add_bytes_contents("hello world");
  return request;
}

// A server whose worker stands before a closed gate with one request, so that all others queue.
class RequestFlowTest : public testing::Test {
 protected:
  RequestFlowTest() : RequestFlowTest(InProcessServer::Options{}) {}
  explicit RequestFlowTest(const InProcessServer::Options& options)
      : server_(options), kserve_(inference::GRPCInferenceService::NewStub(server_.NewChannel())) {
    server_.AwaitReady();
  }

  void HoldTheWorker() {
    server_.run_gate().Close();
    held_ = std::async(std::launch::async, [this] { return CallHello(server_.encoder()); });
    server_.run_gate().AwaitWaiting(1);
  }
  void LetGo() {
    server_.run_gate().Open();
    EXPECT_TRUE(held_.get().ok());
  }
  void AwaitQueued(int64_t requests) {
    server_.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", static_cast<double>(requests));
  }
  double Phase(const std::string& method, const std::string& phase) {
    return server_.Metric(absl::StrCat("attendant_request_duration_seconds_sum{method=\"", method,
                                       "\",model=\"tiny\",phase=\"", phase, "\"}"));
  }

  grpc::Status Infer(const inference::ModelInferRequest& request) {
    grpc::ClientContext context;
    SetDeadline(context, std::chrono::seconds(30));
    inference::ModelInferResponse response;
    return kserve_->ModelInfer(&context, request, &response);
  }

  InProcessServer server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> kserve_;
  std::future<grpc::Status> held_;
};

TEST_F(RequestFlowTest, TimeInTheQueueIsNoTimeOfComputing) {
  HoldTheWorker();
  auto infer = std::async(std::launch::async, [&] { return Infer(InferRequest()); });
  auto encode = std::async(std::launch::async, [&] {
    v1::EncodeResponse response;
    EXPECT_TRUE(CallEncode(server_.encoder(), HelloRequest(), response).ok());
    return response.timings();
  });
  AwaitQueued(2);
  const auto queued = Clock::now();
  while (Clock::now() < queued + kHeld) std::this_thread::yield();
  LetGo();
  EXPECT_TRUE(infer.get().ok());
  const v1::Timings timings = encode.get();
  EXPECT_GE(timings.queue_us(), 60'000);
  EXPECT_LT(timings.compute_us(), timings.queue_us());
  EXPECT_GE(timings.total_us(), timings.queue_us() + timings.compute_us());
  server_.AwaitMetric(R"(attendant_requests_total{code="OK",method="model_infer",model="tiny"})",
                      1);
  EXPECT_GE(Phase("model_infer", "queue"), 0.06);
  EXPECT_LT(Phase("model_infer", "compute"), Phase("model_infer", "queue"));
}

TEST_F(RequestFlowTest, LowerPrioritiesComeLater) {
  // The worker takes one sequence after the other.
  HoldTheWorker();
  absl::Mutex mutex;
  std::vector<std::string> order;
  const auto done = [&](const std::string& name, const grpc::Status& status) {
    EXPECT_TRUE(status.ok()) << status.error_message();
    absl::MutexLock lock(&mutex);
    order.push_back(name);
  };
  // So many sequences that the requests cannot share a batch.
  v1::EncodeRequest low = HelloRequest();
  low.set_priority(-2);
  while (low.sequences().sequences_size() < 600) {
    *low.mutable_sequences()->add_sequences() = low.sequences().sequences(0);
  }
  v1::EncodeRequest normal = low;
  normal.set_priority(-1);
  auto first = std::async(std::launch::async, [&] {
    v1::EncodeResponse response;
    done("low", CallEncode(server_.encoder(), low, response));
  });
  AwaitQueued(1);
  auto second = std::async(std::launch::async, [&] {
    v1::EncodeResponse response;
    done("normal", CallEncode(server_.encoder(), normal, response));
  });
  AwaitQueued(2);
  LetGo();
  first.get();
  second.get();
  EXPECT_THAT(order, ElementsAre("normal", "low"));
}

TEST_F(RequestFlowTest, EveryProtocolHonoursTheCallsDeadline) {
  ASSERT_TRUE(Infer(InferRequest()).ok());  // the connection stands: the deadline is the server's
  HoldTheWorker();
  grpc::ClientContext context;
  SetDeadline(context, std::chrono::milliseconds(500));
  inference::ModelInferResponse response;
  EXPECT_EQ(kserve_->ModelInfer(&context, InferRequest(), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  server_.AwaitMetric(
      R"(attendant_requests_total{code="DEADLINE_EXCEEDED",method="model_infer",model="tiny"})", 1);
  // A deadline that only the server knows: its own watch ends the request, and counts it.
  inference::ModelInferRequest timed = InferRequest();
  (*timed.mutable_parameters())["timeout"].set_int64_param(1000);
  EXPECT_EQ(Infer(timed).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_GE(server_.Metric(R"(attendant_rejected_total{model="tiny",reason="deadline"})"), 1);
  LetGo();
}

TEST_F(RequestFlowTest, CountsTheTokensThatAreComputed) {
  v1::EncodeRequest request = HelloRequest();
  v1::TokenIds& ids = *request.mutable_sequences()->mutable_sequences(0)->mutable_ids();
  for (int i = 0; i < 10; ++i) {
    ids.add_token_ids(kHello);
    ids.add_attention_mask(i < 4);
  }
  v1::EncodeResponse response;
  ASSERT_TRUE(CallEncode(server_.encoder(), request, response).ok());
  server_.AwaitMetric(R"(attendant_sequence_tokens_sum{model="tiny"})", 4);
  EXPECT_EQ(server_.Metric(R"(attendant_tokens_total{kind="padding",model="tiny"})"), 6);
}

TEST_F(RequestFlowTest, DimsMayBeTheHiddenSize) {
  v1::EncodeRequest request = HelloRequest();
  request.mutable_outputs()->mutable_pooled()->set_dims(static_cast<int32_t>(kTinyConfig.hidden));
  v1::EncodeResponse response;
  EXPECT_TRUE(CallEncode(server_.encoder(), request, response).ok());
  request.mutable_outputs()->mutable_pooled()->set_dims(static_cast<int32_t>(kTinyConfig.hidden) +
                                                        1);
  EXPECT_EQ(CallEncode(server_.encoder(), request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

class ExactLimitsTest : public RequestFlowTest {
 protected:
  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.flags.encode.max_request_sequences = 3;
    // The hidden states of the two layers' inputs, of four tokens: [CLS] hello world [SEP].
    options.flags.encode.max_response_bytes = 2 * 4 * kTinyConfig.hidden * 4;
    return options;
  }
  ExactLimitsTest() : RequestFlowTest(Options()) {}
};

TEST_F(ExactLimitsTest, SoManySequencesAndNoMore) {
  v1::EncodeRequest request = HelloRequest();
  v1::EncodeResponse response;
  while (request.sequences().sequences_size() < 3) {
    *request.mutable_sequences()->add_sequences() = request.sequences().sequences(0);
  }
  EXPECT_TRUE(CallEncode(server_.encoder(), request, response).ok());
  *request.mutable_sequences()->add_sequences() = request.sequences().sequences(0);
  EXPECT_EQ(CallEncode(server_.encoder(), request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ExactLimitsTest, HiddenLayersCountInTheAnswersSize) {
  v1::EncodeRequest request = HelloRequest();
  v1::EncodeResponse response;
  for (const int layer : {0, 1}) request.mutable_outputs()->add_hidden_layers(layer);
  EXPECT_TRUE(CallEncode(server_.encoder(), request, response).ok());
  request.mutable_outputs()->add_hidden_layers(2);
  EXPECT_EQ(CallEncode(server_.encoder(), request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace attendant
