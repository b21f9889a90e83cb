// SPDX-License-Identifier: Apache-2.0
// What the attention service shares with Encode: queue, deadlines, cancellation, limits, drain,
// metrics, streams.
#include "server/rpc/attention_service.h"

#include <gmock/gmock.h>

#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/attention/modules/module.h"
#include "tests/server/rpc/attention/fixture.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr char kTokens[] = "attendant_queue_tokens{model=\"attention\"}";
constexpr char kInflight[] = "attendant_inflight_requests{model=\"attention\"}";

TEST_F(AttentionTest, AnswersBeforeModelsHaveLoaded) {
  InProcessServer::Options options;
  options.load_gate_open = false;
  Start(options);
  ExpectOnes();
}

TEST_F(AttentionTest, CountsUnderItsOwnName) {
  Start();
  ExpectOnes();
  v1::AttendRequest named = OnesRequest();
  named.set_model("attention");
  v1::AttendResponse response;
  EXPECT_TRUE(Attend(named, response).ok());
  EXPECT_GT(response.timings().total_us(), 0);
  server_->AwaitMetric(
      "attendant_requests_total{code=\"OK\",method=\"attend\",model=\"attention\"}", 2);
  EXPECT_EQ(server_->Metric("attendant_request_duration_seconds_count{method=\"attend\",model="
                            "\"attention\",phase=\"compute\"}"),
            2);
  EXPECT_EQ(server_->Metric("attendant_tokens_total{kind=\"valid\",model=\"attention\"}"), 24);
  EXPECT_EQ(server_->Metric("attendant_batches_total{model=\"attention\"}"), 2);
}

TEST_F(AttentionTest, IsNoModelOfTheOtherServices) {
  Start();
  server_->AwaitReady();
  v1::EncodeRequest encode = HelloRequest();
  encode.set_model("attention");
  EXPECT_THAT(server_->Refusal(encode), HasSubstr("which attendant.v1.Attention serves"));
  grpc::ClientContext context;
  v1::ListModelsResponse models;
  ASSERT_TRUE(server_->encoder().ListModels(&context, {}, &models).ok());
  EXPECT_EQ(models.models_size(), 1);
}

TEST_F(AttentionTest, ListsKindsAndLimits) {
  Start();
  grpc::ClientContext context;
  v1::ListAttentionResponse response;
  ASSERT_TRUE(stub_->ListAttention(&context, {}, &response).ok());
  std::set<std::string> names;
  for (const v1::AttentionKindInfo& kind : response.kinds()) {
    names.insert(kind.name());
    EXPECT_FALSE(kind.formula().empty());
  }
  for (const char* name :
       {"scaled_dot_product", "flash", "multi_head", "additive", "luong_dot", "luong_general",
        "luong_concat", "local", "strided", "linear", "linformer"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(response.kinds_size(), 11) << "and none that no request may name";
  EXPECT_EQ(response.limits().max_attention_tokens(), 65536);
  EXPECT_EQ(response.modules_size(), 0);
}

// A client's call that can be cancelled, on a thread of its own.
class Call {
 public:
  Call(v1::Attention::Stub& stub, const v1::AttendRequest& request)
      : thread_([this, &stub, request] { status_ = stub.Attend(&context_, request, &response_); }) {
  }
  ~Call() {
    if (thread_.joinable()) thread_.join();
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Wait() {
    thread_.join();
    return status_;
  }
  const v1::AttendResponse& response() const { return response_; }

 private:
  grpc::ClientContext context_;
  v1::AttendResponse response_;
  grpc::Status status_;
  std::thread thread_;
};

// A server whose worker, of one thread, is busy for seconds, unless the test cancels `running_`.
class BusyAttentionTest : public AttentionTest {
 protected:
  void StartBusy(InProcessServer::Options options = {}, int64_t max_operations = int64_t{1} << 40) {
    options.flags.attention.max_tokens = 120'000;
    options.flags.attention.max_operations = max_operations;
    options.flags.stall_timeout_s = 1;
    options.flags.threads = 1;
    Start(options);
    running_ = std::make_unique<Call>(*stub_, LongRequest(60000));
    // It has run for a second. A request in flight with none in the queue may be on its way there.
    server_->AwaitMetric("attendant_stalled_workers{model=\"attention\"}", 1);
  }
  // Of what waits, once anything does.
  double AwaitTokens() {
    double tokens = 0;
    while (tokens == 0) tokens = server_->Metric(kTokens);
    return tokens;
  }

  std::unique_ptr<Call> running_;
};

TEST_F(BusyAttentionTest, WaitsInTheQueueByOperationsAndEndsThereOnTime) {
  StartBusy();
  server_->CallUntilCounted(
      R"(attendant_requests_total{code="DEADLINE_EXCEEDED",method="attend",model="attention"})",
      [this] {
        v1::AttendResponse response;
        EXPECT_EQ(Attend(OnesRequest(), response, std::chrono::milliseconds(30)).error_code(),
                  grpc::StatusCode::DEADLINE_EXCEEDED);
      });
  {
    Call cancelled(*stub_, OnesRequest());
    server_->AwaitMetric(kTokens, 1);
    cancelled.Cancel();
    EXPECT_EQ(cancelled.Wait().error_code(), grpc::StatusCode::CANCELLED);
    server_->AwaitMetric(kTokens, 0);
  }
  running_->Cancel();
  EXPECT_EQ(running_->Wait().error_code(), grpc::StatusCode::CANCELLED);
  server_->AwaitMetric(kInflight, 0);
  ExpectOnes();
}

TEST_F(BusyAttentionTest, AFullQueueSaysWhenToComeBack) {
  InProcessServer::Options options;
  options.flags.max_queued_requests = 1;
  StartBusy(options);
  Call waiting(*stub_, OnesRequest());
  server_->AwaitMetric(kTokens, 1);
  grpc::ClientContext context;
  v1::AttendResponse response;
  const grpc::Status status = stub_->Attend(&context, OnesRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  running_->Cancel();
  EXPECT_TRUE(waiting.Wait().ok());
}

TEST_F(BusyAttentionTest, TheQueueIsFullOfOperations) {
  StartBusy();
  int64_t units = 0;  // of the request that is running
  {
    Call waiting(*stub_, LongRequest(60000));
    units = static_cast<int64_t>(AwaitTokens());
    EXPECT_GT(units, 1000) << "about a second, or more";
    waiting.Cancel();
    running_->Cancel();
  }
  running_.reset();
  InProcessServer::Options options;
  options.flags.attention.max_queued_operations = units << 20;
  StartBusy(options, /*max_operations=*/units << 20);
  Call waiting(*stub_, LongRequest(60000));
  server_->AwaitMetric(kTokens, static_cast<double>(units));
  v1::AttendResponse response;
  const grpc::Status status = Attend(OnesRequest(), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("queue full"));
  waiting.Cancel();
  running_->Cancel();
}

TEST_F(BusyAttentionTest, HigherPriorityGoesFirst) {
  InProcessServer::Options options;
  options.flags.max_priority = 1;
  StartBusy(options);
  Call first(*stub_, LongRequest());
  const double units = AwaitTokens();
  // As long as the other one: the queue lets shorter ones pass anyway.
  v1::AttendRequest urgent = LongRequest();
  urgent.set_priority(1);
  Call second(*stub_, urgent);
  server_->AwaitMetric(kTokens, 2 * units);
  running_->Cancel();
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_GE(server_->Metric(kInflight), 1) << "the other long one, which came before, is not done";
  first.Cancel();
}

TEST_F(AttentionTest, EachLimitIsItsOwn) {
  v1::AttendRequest wide = OnesRequest();
  wide.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_SCORES);
  Fill(*wide.mutable_query(), {1, 2000, 16});
  const auto refusal = [&](int64_t AttentionLimits::*limit, int64_t value) {
    InProcessServer::Options options;
    options.flags.attention.*limit = value;
    Start(options);
    v1::AttendResponse response;
    const grpc::Status status = Attend(wide, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_THAT(refusal(&AttentionLimits::max_bytes, 4096), HasSubstr("(--max_attention_bytes)"));
  EXPECT_THAT(refusal(&AttentionLimits::max_operations, 1'000'000),
              HasSubstr("(--max_attention_operations)"));
}

TEST_F(AttentionTest, PendingBytesAreBounded) {
  InProcessServer::Options options;
  v1::AttendRequest request = OnesRequest();
  Fill(*request.mutable_query(), {2, 300, 4});
  // The message fits, as bytes and parsed; with the operands it does not.
  options.flags.memory.max_pending_request_bytes =
      kRequestBytes + 3 * static_cast<int64_t>(request.ByteSizeLong());
  Start(options);
  v1::AttendResponse response;
  const grpc::Status status = Attend(request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max_pending_request_bytes"));
  EXPECT_EQ(server_->Metric("attendant_rejected_total{model=\"attention\",reason=\"memory\"}"), 1);
  request.mutable_query()->set_data(std::string(16, '\0'));
  request.mutable_query()->clear_shape();
  for (int64_t dim : {1, 1, 4}) request.mutable_query()->add_shape(dim);
  // Given back each time: soon after the answer was read, when gRPC lets go of the call.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(AttendOnceThereIsRoom(request, response).ok());
}

// The wrong shape is found when they are packed: not before there is room for it.
TEST_F(AttentionTest, WeightsOfARequestArePaidForBeforeTheyArePacked) {
  v1::AttendRequest request = OnesRequest();
  v1::MultiHeadAttention& kind = *request.mutable_multi_head();
  kind.set_heads(2);
  for (v1::Tensor* weight : {kind.mutable_query_weight(), kind.mutable_key_weight(),
                             kind.mutable_value_weight(), kind.mutable_output_weight()}) {
    Fill(*weight, {4, 500});
  }
  const auto bytes = static_cast<int64_t>(request.ByteSizeLong());
  const int64_t parsed = kRequestBytes + 2 * bytes + 4096;
  const int64_t little = parsed + 4 * attention::MaxPackedBytes(4, 500);
  for (const auto& [room, code] : {std::pair{little, grpc::StatusCode::RESOURCE_EXHAUSTED},
                                   std::pair{10 * little, grpc::StatusCode::INVALID_ARGUMENT}}) {
    InProcessServer::Options options;
    options.flags.memory.max_pending_request_bytes = room;
    Start(options);
    v1::AttendResponse response;
    EXPECT_EQ(Attend(request, response).error_code(), code);
  }
}

TEST_F(AttentionTest, DrainAnswersWhatWasAdmitted) {
  InProcessServer::Options options;
  options.flags.drain_timeout_s = 600;  // the request takes half a minute under ThreadSanitizer
  Start(options);
  server_->AwaitReady();
  Call running(*stub_, LongRequest());
  server_->AwaitMetric(kInflight, 1);
  server_->RequestStop();
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_TRUE(server_->AwaitStopped().ok());
  v1::AttendResponse response;
  EXPECT_EQ(Attend(OnesRequest(), response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AttentionTest, AStreamAnswersEachRequest) {
  Start();
  grpc::ClientContext context;
  const auto stream = stub_->AttendStream(&context);
  std::set<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    v1::AttendRequest request = OnesRequest();
    request.set_id(std::to_string(i));
    if (i % 5 == 4) request.clear_query();
    expected.insert(request.id());
    ASSERT_TRUE(stream->Write(request));
  }
  stream->WritesDone();
  v1::AttendStreamResponse answer;
  while (stream->Read(&answer)) {
    EXPECT_EQ(expected.erase(answer.id()), 1u);
    EXPECT_EQ(answer.has_error(), std::stoi(answer.id()) % 5 == 4);
    if (answer.has_response()) {
      EXPECT_NEAR(Floats(answer.response().output())[0], 1, 1e-6);
    }
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(expected.empty());
}

// What transformers writes where a key is hidden. In front of all keys it hides none, as in
// PyTorch.
TEST_F(AttentionTest, MasksOfTheLeastNumberAreFinite) {
  Start();
  const auto fill = [](v1::Tensor& mask, const std::vector<int64_t>& shape, v1::DType dtype) {
    Fill(mask, shape, std::numeric_limits<float>::lowest());
    if (dtype == v1::DTYPE_F32) return;
    std::string values;
    for (size_t i = 0; i < mask.data().size(); i += sizeof(float)) values += "\x7f\xff";
    mask.set_dtype(dtype);
    mask.set_data(values);
  };
  const std::vector<std::vector<int64_t>> shapes = {{3, 3}, {1, 3}, {2, 1, 3, 3}};
  for (const std::vector<int64_t>& shape : shapes) {
    for (const v1::DType dtype : {v1::DTYPE_F32, v1::DTYPE_BF16}) {
      v1::AttendRequest request = OnesRequest();
      request.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
      fill(*request.mutable_mask(), shape, dtype);
      v1::AttendResponse response;
      const grpc::Status status = Attend(request, response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_THAT(Floats(response.weights()), Each(FloatNear(1.0f / 3, 1e-6f)));
      // The first key is not hidden.
      std::string& data = *request.mutable_mask()->mutable_data();
      const size_t value_bytes = dtype == v1::DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
      for (size_t at = 0; at < data.size(); at += 3 * value_bytes) {
        data.replace(at, value_bytes, std::string(value_bytes, '\0'));
      }
      ASSERT_TRUE(Attend(request, response).ok());
      const std::vector<float> weights = Floats(response.weights());
      for (size_t j = 0; j < weights.size(); ++j) EXPECT_EQ(weights[j], j % 3 == 0 ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace attendant
