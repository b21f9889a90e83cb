// SPDX-License-Identifier: Apache-2.0
// What a request says and what it takes reach the right place, through every protocol: priority,
// deadline, times, counts, exact limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "inference/grpc_service.grpc.pb.h"
#include "kernels/core/backend.h"
#include "tests/server/http/http_client.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

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
  void AwaitHeld() {
    const auto queued = Clock::now();
    while (Clock::now() < queued + kHeld) std::this_thread::yield();
  }
  // Of two calls that wait for the worker, `second` longer than `first`: whether `first` is
  // answered before it.
  bool ComesFirst(const std::function<grpc::Status()>& first,
                  const std::function<grpc::Status()>& second) {
    HoldTheWorker();
    absl::Mutex mutex;
    std::vector<int> order;
    const auto call = [&](int number, const std::function<grpc::Status()>& make) {
      const grpc::Status status = make();
      EXPECT_TRUE(status.ok()) << status.error_message();
      absl::MutexLock lock(&mutex);
      order.push_back(number);
    };
    auto longer = std::async(std::launch::async, [&] { call(2, second); });
    AwaitQueued(1);
    auto shorter = std::async(std::launch::async, [&] { call(1, first); });
    AwaitQueued(2);
    server_.run_gate().Let(2);  // the batch that is held, and the next one; the last one waits
    const auto answered = [&order] { return !order.empty(); };
    mutex.LockWhen(absl::Condition(&answered));
    const int next = order.front();
    mutex.Unlock();
    LetGo();
    longer.get();
    shorter.get();
    return next == 1;
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
  auto encode =
      std::async(std::launch::async, [&] { return server_.Encode(HelloRequest()).timings(); });
  AwaitQueued(2);
  AwaitHeld();
  LetGo();
  EXPECT_TRUE(infer.get().ok());
  const v1::Timings timings = encode.get();
  EXPECT_GE(timings.queue_us(), 60'000);
  // Else the time in the queue is in both. On a busy machine either may be the longer one.
  EXPECT_GE(timings.total_us(), timings.queue_us() + timings.compute_us());
  server_.AwaitMetric(R"(attendant_requests_total{code="OK",method="model_infer",model="tiny"})",
                      1);
  EXPECT_GE(Phase("model_infer", "queue"), 0.06);
  EXPECT_GE(Phase("model_infer", "total"),
            Phase("model_infer", "queue") + Phase("model_infer", "compute"));
}

// So many sequences that a request fills a batch alone, and needs no second one.
constexpr int kWholeBatch = static_cast<int>(BackendDefaults().batch_sequences);

TEST_F(RequestFlowTest, LowerPrioritiesComeLater) {
  v1::EncodeRequest low = HelloRequest();
  low.set_priority(-2);
  while (low.sequences().sequences_size() < kWholeBatch) {
    *low.mutable_sequences()->add_sequences() = low.sequences().sequences(0);
  }
  v1::EncodeRequest normal = low;
  normal.set_priority(-1);
  const auto encode = [this](const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    return CallEncode(server_.encoder(), request, response);
  };
  EXPECT_TRUE(ComesFirst([&] { return encode(normal); }, [&] { return encode(low); }));
}

TEST_F(RequestFlowTest, LevelsOfKServeArePriorities) {
  inference::ModelInferRequest low = InferRequest();
  low.mutable_inputs(0)->set_shape(0, kWholeBatch);
  auto& texts = *low.mutable_inputs(0)->mutable_contents();
  while (texts.bytes_contents_size() < kWholeBatch) texts.add_bytes_contents("hello world");
  inference::ModelInferRequest normal = low;
  (*low.mutable_parameters())["priority"].set_int64_param(103);
  (*normal.mutable_parameters())["priority"].set_int64_param(102);
  EXPECT_TRUE(ComesFirst([&] { return Infer(normal); }, [&] { return Infer(low); }));
}

TEST_F(RequestFlowTest, TheHeaderOfHttpIsThePriorityOfEachDoor) {
  std::string texts = "\"hello world\"", sequences = R"({"text":"hello world"})";
  for (int i = 1; i < kWholeBatch; ++i) {
    texts += ",\"hello world\"";
    sequences += R"(,{"text":"hello world"})";
  }
  const std::pair<const char*, std::string> requests[] = {
      {"/v1/embeddings", absl::StrCat(R"({"model":"tiny","input":[)", texts, "]}")},
      {"/attendant.v1.Encoder/Encode",
       absl::StrCat(R"({"model":"tiny","sequences":{"sequences":[)", sequences, "]}}")},
      {"/embed", absl::StrCat(R"({"inputs":[)", texts, "]}")},
      {"/v2/embed", absl::StrCat(R"({"model":"tiny","texts":[)", texts, "]}")}};
  for (const auto& [path, body] : requests) {
    const auto post = [&, path = path, body = body](int priority) {
      const HttpAnswer answer = HttpPost(server_.http_port(), path, body,
                                         absl::StrCat("X-Request-Priority: ", priority, "\r\n"));
      return answer.code == 200 ? grpc::Status::OK
                                : grpc::Status(grpc::StatusCode::UNKNOWN, answer.body);
    };
    EXPECT_TRUE(ComesFirst([&] { return post(-1); }, [&] { return post(-2); })) << path;
  }
}

TEST_F(RequestFlowTest, StatisticsTellTheTimeInTheQueueFromTheComputing) {
  HoldTheWorker();
  auto infer = std::async(std::launch::async, [&] { return Infer(InferRequest()); });
  AwaitQueued(1);
  AwaitHeld();
  LetGo();
  EXPECT_TRUE(infer.get().ok());
  grpc::ClientContext context;
  inference::ModelStatisticsRequest request;
  request.set_name("tiny");
  inference::ModelStatisticsResponse response;
  ASSERT_TRUE(kserve_->ModelStatistics(&context, request, &response).ok());
  ASSERT_EQ(response.model_stats_size(), 1);
  const inference::InferStatistics& infer_stats = response.model_stats(0).inference_stats();
  EXPECT_GE(infer_stats.queue().ns(), 60'000'000u);
  EXPECT_GT(infer_stats.compute_infer().ns(), 0u);
  EXPECT_GE(infer_stats.success().ns(),
            infer_stats.queue().ns() + infer_stats.compute_infer().ns());
}

TEST_F(RequestFlowTest, EveryProtocolHonoursTheCallsDeadline) {
  ASSERT_TRUE(Infer(InferRequest()).ok());  // the connection stands: the deadline is the server's
  HoldTheWorker();
  server_.CallUntilCounted(
      R"(attendant_requests_total{code="DEADLINE_EXCEEDED",method="model_infer",model="tiny"})",
      [this] {
        grpc::ClientContext context;
        SetDeadline(context, std::chrono::milliseconds(100));
        inference::ModelInferResponse response;
        EXPECT_EQ(kserve_->ModelInfer(&context, InferRequest(), &response).error_code(),
                  grpc::StatusCode::DEADLINE_EXCEEDED);
      });
  // A deadline that only the server knows: its own watch ends the request, and counts it.
  inference::ModelInferRequest timed = InferRequest();
  (*timed.mutable_parameters())["timeout"].set_int64_param(1000);
  EXPECT_EQ(Infer(timed).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_GE(server_.Metric(R"(attendant_rejected_total{model="tiny",reason="deadline"})"), 1);
  LetGo();
}

TEST_F(RequestFlowTest, ADeadlineThatHasPassedIsARejection) {
  inference::ModelInferRequest timed = InferRequest();
  (*timed.mutable_parameters())["timeout"].set_int64_param(1);  // us: reading takes longer
  EXPECT_EQ(Infer(timed).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server_.Metric(R"(attendant_rejected_total{model="tiny",reason="deadline"})"), 1);
}

TEST_F(RequestFlowTest, EveryRequestHasATotalTimeAndAnsweredOnesTheirPhases) {
  EXPECT_TRUE(CallHello(server_.encoder()).ok());
  v1::EncodeRequest bad = HelloRequest();
  bad.set_priority(101);
  EXPECT_THAT(server_.Refusal(bad), HasSubstr("priority is 101"));
  const auto count = [](const std::string& phase) {
    return absl::StrCat(
        "attendant_request_duration_seconds_count{method=\"encode\",model=\"tiny\",", "phase=\"",
        phase, "\"}");
  };
  server_.AwaitMetric(count("total"), 2);
  for (const char* phase : {"tokenize", "queue", "compute", "serialize"}) {
    EXPECT_EQ(server_.Metric(count(phase)), 1) << phase;
  }
}

TEST_F(RequestFlowTest, AMessageThatIsNoneIsCounted) {
  v1::EncodeRequest bad = HelloRequest();
  bad.set_id(std::string(257, 'x'));
  EXPECT_THAT(server_.Refusal(bad), HasSubstr("id has 257 bytes"));
  EXPECT_EQ(server_.Metric(R"(attendant_refused_total{reason="message"})"), 1);
}

TEST_F(RequestFlowTest, CountsTheTokensThatAreComputed) {
  v1::EncodeRequest request = HelloRequest();
  v1::TokenIds& ids = *request.mutable_sequences()->mutable_sequences(0)->mutable_ids();
  for (int i = 0; i < 10; ++i) {
    ids.add_token_ids(kHello);
    ids.add_attention_mask(i < 4);
  }
  server_.Encode(request);
  server_.AwaitMetric(R"(attendant_sequence_tokens_sum{model="tiny"})", 4);
  EXPECT_EQ(server_.Metric(R"(attendant_tokens_total{kind="padding",model="tiny"})"), 6);
}

TEST_F(RequestFlowTest, DimsMayBeTheHiddenSize) {
  v1::EncodeRequest request = HelloRequest();
  request.mutable_outputs()->mutable_pooled()->set_dims(static_cast<int32_t>(kTinyConfig.hidden));
  server_.Encode(request);
  request.mutable_outputs()->mutable_pooled()->set_dims(static_cast<int32_t>(kTinyConfig.hidden) +
                                                        1);
  EXPECT_THAT(server_.Refusal(request), HasSubstr("cannot be cut to 17"));
}

// One sequence is a batch, and a client's turn.
class ClientTurnsTest : public RequestFlowTest {
 protected:
  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.flags.max_batch_tokens = 16;
    options.flags.max_batch_sequences = 1;
    return options;
  }
  ClientTurnsTest() : RequestFlowTest(Options()) {}
};

TEST_F(ClientTurnsTest, AConnectionWithManyRequestsLetsOthersGo) {
  HoldTheWorker();
  const std::unique_ptr<v1::Encoder::Stub> other = v1::Encoder::NewStub(server_.NewChannel());
  absl::Mutex mutex;
  std::vector<const v1::Encoder::Stub*> answered;
  const auto call = [&](v1::Encoder::Stub& stub) {
    EXPECT_TRUE(CallHello(stub).ok());
    absl::MutexLock lock(&mutex);
    answered.push_back(&stub);
  };
  std::vector<std::future<void>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { call(server_.encoder()); }));
    AwaitQueued(i + 1);
  }
  calls.push_back(std::async(std::launch::async, [&] { call(*other); }));
  AwaitQueued(4);
  server_.run_gate().Let(3);  // the batch that is held, and a turn of each
  const auto two_answered = [&answered] { return answered.size() == 2; };
  mutex.LockWhen(absl::Condition(&two_answered));
  EXPECT_NE(answered[0], answered[1]);
  mutex.Unlock();
  LetGo();
  for (std::future<void>& each : calls) each.get();
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
  while (request.sequences().sequences_size() < 3) {
    *request.mutable_sequences()->add_sequences() = request.sequences().sequences(0);
  }
  server_.Encode(request);
  *request.mutable_sequences()->add_sequences() = request.sequences().sequences(0);
  EXPECT_THAT(server_.Refusal(request), HasSubstr("more than 3 elements"));
}

TEST_F(ExactLimitsTest, HiddenLayersCountInTheAnswersSize) {
  v1::EncodeRequest request = HelloRequest();
  for (const int layer : {0, 1}) request.mutable_outputs()->add_hidden_layers(layer);
  server_.Encode(request);
  request.mutable_outputs()->add_hidden_layers(2);
  EXPECT_THAT(server_.Refusal(request), HasSubstr("the outputs asked for take"));
}

}  // namespace
}  // namespace attendant
