// SPDX-License-Identifier: Apache-2.0
// Text, and the numbers of the real model, are tested with stock clients in
// tests/integration/kserve.
#include "server/rpc/kserve_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/server/rpc/kserve/fixture.h"

namespace attendant {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(KServeServiceTest, TellsItsName) {
  grpc::ClientContext context;
  inference::ServerMetadataResponse response;
  ASSERT_TRUE(stub_->ServerMetadata(&context, {}, &response).ok());
  EXPECT_EQ(response.name(), "attendant");
  EXPECT_EQ(response.version(), "1.2.3");
  EXPECT_THAT(response.extensions(), Contains("statistics"));
  EXPECT_THAT(response.extensions(), Contains("model_repository"));
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

// A request too large to be read on gRPC's thread, and one of more rows than a batch has.
TEST_F(KServeServiceTest, LargeRequestsAreAnsweredToo) {
  constexpr int64_t kRows = 200;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kRows * 32; ++i) ids.push_back(i % 97);
  const std::vector<float> embeddings = Values(Infer(Request("tiny.ids", kRows, ids)));
  ASSERT_EQ(embeddings.size(), static_cast<size_t>(kRows * kHidden));
  EXPECT_EQ(decoded_apart_, 1);
  const std::vector<int64_t> last(ids.end() - 32, ids.end());
  EXPECT_EQ(Rows(embeddings, kRows - 1, 1), Values(Infer(Request("tiny.ids", 1, last))));
  EXPECT_EQ(decoded_apart_, 1) << "gRPC's thread reads a small one";
}

TEST_F(KServeServiceTest, ASequenceMayBeAPairOfTexts) {
  const int64_t limit = 2 * dependencies_.limits.max_request_sequences;
  const auto refusal = [&](int64_t texts) {
    ModelInferRequest request;
    request.set_model_name("tiny.scores");
    inference::ModelInferRequest::InferInputTensor& input = *request.add_inputs();
    for (int64_t i = 0; i < texts; ++i) input.mutable_contents()->add_bytes_contents("a");
    ModelInferResponse response;
    return Infer(request, response).error_message();
  };
  const std::string too_many = absl::StrCat("has more than ", limit, " elements");
  EXPECT_THAT(refusal(limit), Not(HasSubstr("has more than")));
  EXPECT_THAT(refusal(limit + 1), HasSubstr(too_many));
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
  EXPECT_UNIMPLEMENTED(SystemSharedMemoryRegister)
  EXPECT_UNIMPLEMENTED(CudaSharedMemoryRegister)
  EXPECT_UNIMPLEMENTED(TraceSetting)
  EXPECT_UNIMPLEMENTED(LogSettings)
#undef EXPECT_UNIMPLEMENTED
}

}  // namespace
}  // namespace attendant
