// SPDX-License-Identifier: Apache-2.0
// The service in process, on a loopback port, with a tiny checkpoint that has no tokenizer. Text,
// and the numbers of the real model, are tested with stock clients in tests/integration/kserve.
#include "server/rpc/kserve_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/completion_pool.h"

namespace attendant {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kHidden = 48;
constexpr int kMaxStreamRequests = 16;

ModelOptions Options() {
  ModelOptions options;
  options.dtype = "f32";
  options.backend = "reference";
  options.batcher = {.max_batch_tokens = 256,
                     .max_batch_sequences = 16,
                     .max_queued_tokens = 1 << 16,
                     .max_queued_requests = 1 << 12,
                     .max_queue_delay = absl::ZeroDuration()};
  return options;
}

class KServeServiceTest : public testing::Test {
 protected:
  KServeServiceTest()
      : completions_(2),
        metrics_("test"),
        registry_(Options(), metrics_,
                  [this](absl::AnyInvocable<void()> f) { completions_.Post(std::move(f)); }),
        pipeline_(registry_, metrics_),
        service_(pipeline_, "1.2.3",
                 [this](absl::AnyInvocable<void()> f) { completions_.Post(std::move(f)); },
                 {.max_requests = kMaxStreamRequests}) {}

  void SetUp() override {
    std::promise<ModelState> loaded;
    registry_.SetListener([&loaded](const std::string&, ModelState state) {
      if (state == ModelState::kReady || state == ModelState::kFailed) loaded.set_value(state);
    });
    registry_.StartLoading({{"tiny", "tests/golden/encoder/tiny_gelu"}});
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
    ASSERT_EQ(loaded.get_future().get(), ModelState::kReady) << registry_.Ready();
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

  CompletionPool completions_;
  ServerMetrics metrics_;
  ModelRegistry registry_;
  EncodePipeline pipeline_;
  KServeService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

void AddInts(ModelInferRequest& request, const std::string& name, int64_t batch,
             const std::vector<int64_t>& values) {
  auto& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype("INT64");
  input.add_shape(batch);
  input.add_shape(static_cast<int64_t>(values.size()) / batch);
  request.add_raw_input_contents(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(int64_t));
}

ModelInferRequest Request(const std::string& model, int64_t batch,
                          const std::vector<int64_t>& ids) {
  ModelInferRequest request;
  request.set_model_name(model);
  AddInts(request, "input_ids", batch, ids);
  return request;
}

std::vector<float> Values(const ModelInferResponse& response) {
  if (response.raw_output_contents_size() != 1) return {};
  std::vector<float> values(response.raw_output_contents(0).size() / sizeof(float));
  std::memcpy(values.data(), response.raw_output_contents(0).data(), values.size() * sizeof(float));
  return values;
}

std::vector<float> Rows(const std::vector<float>& values, int64_t first, int64_t count) {
  return {values.begin() + first * kHidden, values.begin() + (first + count) * kHidden};
}

TEST_F(KServeServiceTest, TellsItsName) {
  grpc::ClientContext context;
  inference::ServerMetadataResponse response;
  ASSERT_TRUE(stub_->ServerMetadata(&context, {}, &response).ok());
  EXPECT_EQ(response.name(), "attendant");
  EXPECT_EQ(response.version(), "1.2.3");
  EXPECT_THAT(response.extensions(), Contains("statistics"));
}

TEST_F(KServeServiceTest, ReadinessOfServerAndModels) {
  inference::ServerLiveResponse live;
  grpc::ClientContext live_context;
  ASSERT_TRUE(stub_->ServerLive(&live_context, {}, &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  grpc::ClientContext ready_context;
  ASSERT_TRUE(stub_->ServerReady(&ready_context, {}, &ready).ok());
  EXPECT_TRUE(ready.ready());

  const std::map<std::string, bool> models = {
      {"tiny.ids", true}, {"tiny.encoder", true}, {"tiny", false}, {"nobody", false}, {"", false}};
  for (const auto& [name, expected] : models) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    inference::ModelReadyResponse response;
    ASSERT_TRUE(stub_->ModelReady(&context, request, &response).ok()) << name;
    EXPECT_EQ(response.ready(), expected) << name;
  }
}

TEST_F(KServeServiceTest, IndexListsTheNamesThatAnswer) {
  grpc::ClientContext context;
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(stub_->RepositoryIndex(&context, {}, &index).ok());
  std::vector<std::string> names;
  for (const auto& model : index.models()) {
    names.push_back(model.name());
    EXPECT_EQ(model.state(), "READY");
  }
  EXPECT_THAT(names, ElementsAre("tiny.ids", "tiny.encoder"));
}

TEST_F(KServeServiceTest, UnknownNamesAndVersionsAreNotFound) {
  for (const auto& [name, version] : std::map<std::string, std::string>{
           {"nobody", ""}, {"tiny", ""}, {"tiny.ids", "7"}, {"nobody.ids", "1"}, {"", ""}}) {
    grpc::ClientContext context;
    inference::ModelMetadataRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelMetadataResponse response;
    EXPECT_EQ(stub_->ModelMetadata(&context, request, &response).error_code(),
              grpc::StatusCode::NOT_FOUND)
        << name;
  }
}

TEST_F(KServeServiceTest, ConfigAgreesWithMetadata) {
  grpc::ClientContext metadata_context;
  inference::ModelMetadataRequest metadata_request;
  metadata_request.set_name("tiny.encoder");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(stub_->ModelMetadata(&metadata_context, metadata_request, &metadata).ok());
  grpc::ClientContext config_context;
  inference::ModelConfigRequest config_request;
  config_request.set_name("tiny.encoder");
  inference::ModelConfigResponse config;
  ASSERT_TRUE(stub_->ModelConfig(&config_context, config_request, &config).ok());
  EXPECT_GT(config.config().max_batch_size(), 0);
  ASSERT_EQ(config.config().output_size(), 1);
  EXPECT_THAT(config.config().output(0).dims(), ElementsAre(-1, kHidden));
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, -1, kHidden));
}

TEST_F(KServeServiceTest, PaddedRowsEqualRaggedOnes) {
  ModelInferRequest padded = Request("tiny.encoder", 2, {5, 6, 7, 8, 9, 0});
  AddInts(padded, "attention_mask", 2, {1, 1, 1, 1, 1, 0});
  padded.set_id("padded");
  const ModelInferResponse response = Infer(padded);
  EXPECT_EQ(response.id(), "padded");
  EXPECT_EQ(response.model_name(), "tiny.encoder");
  EXPECT_EQ(response.model_version(), "1");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, kHidden));
  const std::vector<float> states = Values(response);
  ASSERT_EQ(states.size(), 2u * 3 * kHidden);
  EXPECT_EQ(Rows(states, 0, 3), Values(Infer(Request("tiny.encoder", 1, {5, 6, 7}))));
  EXPECT_EQ(Rows(states, 3, 2), Values(Infer(Request("tiny.encoder", 1, {8, 9}))));
  EXPECT_THAT(Rows(states, 5, 1), Each(0.0f));
}

TEST_F(KServeServiceTest, EmbeddingIsTheMeanOfTheUnmaskedStates) {
  ModelInferRequest request = Request("tiny.encoder", 1, {5, 6, 7, 8});
  AddInts(request, "attention_mask", 1, {1, 0, 1, 1});
  const std::vector<float> states = Values(Infer(request));
  request.set_model_name("tiny.ids");
  const std::vector<float> embedding = Values(Infer(request));
  ASSERT_EQ(states.size(), 4u * kHidden);
  ASSERT_EQ(embedding.size(), static_cast<size_t>(kHidden));
  EXPECT_THAT(Rows(states, 1, 1), Each(0.0f));
  for (size_t i = 0; i < embedding.size(); ++i) {
    const float mean = (states[i] + states[2 * kHidden + i] + states[3 * kHidden + i]) / 3;
    EXPECT_NEAR(embedding[i], mean, 1e-6) << i;
  }
}

TEST_F(KServeServiceTest, BadRequestsFailAloneAndAreCounted) {
  const ModelInferRequest good = Request("tiny.ids", 1, {5, 6, 7});
  const std::vector<float> expected = Values(Infer(good));
  std::vector<ModelInferRequest> bad = {Request("tiny.ids", 1, {97}),
                                        Request("tiny.ids", 1, {-1}),
                                        Request("tiny.ids", 1, {int64_t{1} << 32}),
                                        Request("tiny.ids", 1, std::vector<int64_t>(41, 5)),
                                        Request("tiny.ids", 1, {5}),
                                        Request("tiny.ids", 1, {5})};
  bad[4].add_outputs()->set_name("logits");
  bad[5].mutable_inputs(0)->set_shape(0, int64_t{1} << 62);
  for (const ModelInferRequest& request : bad) {
    ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_NE(status.error_message(), "");
    EXPECT_EQ(Values(Infer(good)), expected);
  }
  const inference::ModelStatistics statistics = Statistics("tiny.ids");
  EXPECT_EQ(statistics.inference_stats().fail().count(), bad.size());
  EXPECT_EQ(statistics.inference_stats().success().count(), bad.size() + 1);
}

TEST_F(KServeServiceTest, StatisticsGrowPerName) {
  Infer(Request("tiny.ids", 2, {5, 6, 7, 8}));
  Infer(Request("tiny.ids", 1, {5}));
  const inference::ModelStatistics statistics = Statistics("tiny.ids");
  EXPECT_EQ(statistics.version(), "1");
  EXPECT_EQ(statistics.inference_count(), 3u);
  EXPECT_EQ(statistics.execution_count(), 2u);
  EXPECT_GT(statistics.last_inference(), 0u);
  const inference::InferStatistics& infer = statistics.inference_stats();
  EXPECT_EQ(infer.success().count(), 2u);
  EXPECT_EQ(infer.queue().count(), 2u);
  EXPECT_EQ(infer.compute_input().count(), 2u);
  EXPECT_EQ(infer.compute_infer().count(), 2u);
  EXPECT_EQ(infer.compute_output().count(), 2u);
  EXPECT_GT(infer.compute_infer().ns(), 0u);
  std::map<uint64_t, uint64_t> batches;
  for (const auto& batch : statistics.batch_stats()) {
    batches[batch.batch_size()] = batch.compute_infer().count();
  }
  EXPECT_EQ(batches, (std::map<uint64_t, uint64_t>{{1, 1}, {2, 1}}));
  EXPECT_EQ(Statistics("tiny.encoder").inference_count(), 0u);
}

TEST_F(KServeServiceTest, TimeoutParameterIsADeadline) {
  ModelInferRequest request = Request("tiny.ids", 1, {5, 6, 7});
  (*request.mutable_parameters())["timeout"].set_int64_param(1);
  ModelInferResponse response;
  EXPECT_EQ(Infer(request, response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  (*request.mutable_parameters())["timeout"].set_int64_param(60'000'000);
  EXPECT_TRUE(Infer(request, response).ok());
}

using Stream = grpc::ClientReaderWriter<ModelInferRequest, inference::ModelStreamInferResponse>;

// More requests than may be in flight, every fifth of them bad.
TEST_F(KServeServiceTest, StreamAnswersEveryRequestOnceById) {
  constexpr int kRequests = 10 * kMaxStreamRequests + 1;
  const std::vector<float> expected = Values(Infer(Request("tiny.ids", 1, {5, 6, 7})));
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
  std::thread writer([&stream] {
    for (int i = 0; i < kRequests; ++i) {
      ModelInferRequest request = Request("tiny.ids", 1, {5, 6, i % 5 == 0 ? 1000 : 7});
      request.set_id(absl::StrCat(i));
      EXPECT_TRUE(stream->Write(request));
    }
    EXPECT_TRUE(stream->WritesDone());
  });
  std::map<std::string, int> answers;
  inference::ModelStreamInferResponse response;
  while (stream->Read(&response)) {
    const ModelInferResponse& infer = response.infer_response();
    ++answers[infer.id()];
    EXPECT_TRUE(infer.parameters().at("triton_final_response").bool_param());
    if (std::stoi(infer.id()) % 5 == 0) {
      EXPECT_THAT(response.error_message(), HasSubstr("1000"));
    } else {
      EXPECT_EQ(response.error_message(), "");
      EXPECT_EQ(Values(infer), expected);
    }
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers.size(), static_cast<size_t>(kRequests));
  for (const auto& [id, count] : answers) EXPECT_EQ(count, 1) << id;
}

TEST_F(KServeServiceTest, EmptyStreamEndsWell) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
  EXPECT_TRUE(stream->WritesDone());
  inference::ModelStreamInferResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

// A request too large to be read on gRPC's thread, and one of more rows than a batch has.
TEST_F(KServeServiceTest, LargeRequestsAreAnsweredToo) {
  constexpr int64_t kRows = 200;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kRows * 32; ++i) ids.push_back(i % 97);
  const std::vector<float> embeddings = Values(Infer(Request("tiny.ids", kRows, ids)));
  ASSERT_EQ(embeddings.size(), static_cast<size_t>(kRows * kHidden));
  const std::vector<int64_t> last(ids.end() - 32, ids.end());
  EXPECT_EQ(Rows(embeddings, kRows - 1, 1), Values(Infer(Request("tiny.ids", 1, last))));
}

TEST_F(KServeServiceTest, ClosedStreamsAnswerWhatTheyHaveReadAndEnd) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(Request("tiny.ids", 1, {5, 6, 7})));
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  service_.CloseStreams();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);

  grpc::ClientContext late_context;
  const std::unique_ptr<Stream> late = stub_->ModelStreamInfer(&late_context);
  EXPECT_FALSE(late->Read(&response));
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The client goes at every moment of a stream's life; SetUp's objects must outlive every request.
TEST_F(KServeServiceTest, CancelledStreamsLeaveNothingBehind) {
  for (int writes = 0; writes < 40; ++writes) {
    grpc::ClientContext context;
    const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
    for (int i = 0; i < writes; ++i) stream->Write(Request("tiny.encoder", 1, {5, 6, 7}));
    inference::ModelStreamInferResponse response;
    if (writes % 2 == 1) {
      EXPECT_TRUE(stream->Read(&response));
    }
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_FALSE(Values(Infer(Request("tiny.ids", 1, {5}))).empty());
}

TEST_F(KServeServiceTest, CallsThatMakeNoSenseSayWhy) {
  const auto expect_unimplemented = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(status.error_message(), Not(""));
  };
#define EXPECT_UNIMPLEMENTED(rpc)                              \
  {                                                            \
    grpc::ClientContext context;                               \
    inference::rpc##Response response;                         \
    expect_unimplemented(stub_->rpc(&context, {}, &response)); \
  }
  EXPECT_UNIMPLEMENTED(RepositoryModelLoad)
  EXPECT_UNIMPLEMENTED(RepositoryModelUnload)
  EXPECT_UNIMPLEMENTED(SystemSharedMemoryStatus)
  EXPECT_UNIMPLEMENTED(SystemSharedMemoryRegister)
  EXPECT_UNIMPLEMENTED(SystemSharedMemoryUnregister)
  EXPECT_UNIMPLEMENTED(CudaSharedMemoryStatus)
  EXPECT_UNIMPLEMENTED(CudaSharedMemoryRegister)
  EXPECT_UNIMPLEMENTED(CudaSharedMemoryUnregister)
  EXPECT_UNIMPLEMENTED(TraceSetting)
  EXPECT_UNIMPLEMENTED(LogSettings)
#undef EXPECT_UNIMPLEMENTED
}

}  // namespace
}  // namespace attendant
