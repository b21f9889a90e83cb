// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <numeric>

#include "kernels/checkpoints/checkpoint.h"
#include "kernels/reference/reference_backend.h"
#include "tests/server/encoder_rpc_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class EncoderServiceTest : public EncoderRpcTest {};

v1::EncodeRequest HiddenRequest() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.mutable_outputs()->set_last_hidden_state(true);
  return request;
}

TEST_F(EncoderServiceTest, AnswersTextWithTheModelsOwnPooling) {
  v1::EncodeRequest request = HelloRequest();
  request.mutable_outputs()->set_token_ids(true);
  const v1::EncodeResponse response = Encode(request);
  EXPECT_EQ(response.id(), "hello");
  EXPECT_EQ(response.model(), "tiny");
  ASSERT_THAT(response.sequences(), SizeIs(1));
  EXPECT_EQ(response.sequences(0).tokens(), 4);
  EXPECT_THAT(response.sequences(0).token_ids(), ElementsAre(kCls, kHello, kWorld, kSep));
  EXPECT_THAT(response.pooled().shape(), ElementsAre(1, 16));
  EXPECT_FALSE(response.has_last_hidden_state());
  const std::vector<float> pooled = Floats(response.pooled());
  EXPECT_NEAR(std::inner_product(pooled.begin(), pooled.end(), pooled.begin(), 0.0f), 1, 1e-5);
  EXPECT_GT(response.timings().total_us(), 0);
  EXPECT_GE(response.timings().total_us(), response.timings().compute_us());
}

TEST_F(EncoderServiceTest, EmptyTextIsTwoSpecialTokens) {
  v1::EncodeRequest request = HiddenRequest();
  request.mutable_sequences()->add_sequences()->set_text("");
  EXPECT_THAT(Encode(request).last_hidden_state().shape(), ElementsAre(2, 16));
}

TEST_F(EncoderServiceTest, PaddedBatchIsTheRaggedOneWithZeroRows) {
  v1::EncodeRequest ragged = HiddenRequest();
  ragged.mutable_outputs()->mutable_pooled();
  AddIds(ragged, {kCls, kHello, kSep});
  AddIds(ragged, {kCls, kHello, kWorld, kHello, kSep});
  const v1::EncodeResponse expected = Encode(ragged);

  v1::EncodeRequest request = HiddenRequest();
  request.mutable_outputs()->mutable_pooled();
  v1::PaddedBatch& padded = *request.mutable_padded();
  padded.set_batch(2);
  padded.set_seq(5);
  for (int32_t id : {kCls, kHello, kSep, 0, 0, kCls, kHello, kWorld, kHello, kSep}) {
    padded.add_token_ids(id);
  }
  for (bool keep : {true, true, true, false, false, true, true, true, true, true}) {
    padded.add_attention_mask(keep);
  }
  const v1::EncodeResponse response = Encode(request);
  EXPECT_THAT(response.last_hidden_state().shape(), ElementsAre(2, 5, 16));
  EXPECT_EQ(response.pooled().data(), expected.pooled().data());
  std::vector<float> rows = Floats(expected.last_hidden_state());
  rows.insert(rows.begin() + 3 * 16, 2 * 16, 0.0f);
  EXPECT_EQ(Floats(response.last_hidden_state()), rows);
}

// The same tokens through the back end itself, with the positions that the mask leaves.
TEST_F(EncoderServiceTest, MaskWithHolesKeepsPositions) {
  v1::EncodeRequest request = HiddenRequest();
  AddIds(request, {kCls, kHello, kWorld, kHello, kSep}, {true, false, true, false, true});
  const std::vector<float> rows = Floats(Encode(request).last_hidden_state());

  TempDirectory directory;
  WriteTinyModel(directory / "tiny");
  absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(directory / "tiny");
  ASSERT_TRUE(checkpoint.ok());
  const std::unique_ptr<PreparedEncoder> encoder =
      *MakeReferenceBackend()->Prepare(checkpoint->config, checkpoint->weights, DType::kF32);
  const std::unique_ptr<Session> session = *encoder->NewSession({64, 8}, 1);
  PackedBatch batch;
  const int32_t ids[] = {kCls, kWorld, kSep}, positions[] = {0, 2, 4}, segments[] = {0, 0, 0};
  batch.Append(ids, positions, segments);
  const SequenceOutputs outputs[] = {{.last_hidden_state = true}};
  Outputs expected;
  ASSERT_TRUE(session->Run(batch, {.sequences = outputs}, expected).ok());

  ASSERT_EQ(rows.size(), 5u * 16);
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> row(rows.begin() + i * 16, rows.begin() + (i + 1) * 16);
    if (i % 2 == 1) {
      EXPECT_THAT(row, Each(0.0f)) << i;
    } else {
      const float* values = expected.last_hidden_state.row(i / 2);
      EXPECT_EQ(row, std::vector<float>(values, values + 16)) << i;
    }
  }
}

TEST_F(EncoderServiceTest, FullyMaskedSequenceIsZeros) {
  v1::EncodeRequest request = HiddenRequest();
  request.mutable_outputs()->mutable_pooled();
  AddIds(request, {kCls, kSep}, {false, false});
  const v1::EncodeResponse alone = Encode(request);
  EXPECT_THAT(Floats(alone.last_hidden_state()), Each(0.0f));
  EXPECT_THAT(alone.pooled().shape(), ElementsAre(1, 16));
  EXPECT_THAT(Floats(alone.pooled()), Each(0.0f));

  AddIds(request, {kCls, kHello, kSep});
  const std::vector<float> both = Floats(Encode(request).pooled());
  EXPECT_THAT(std::vector<float>(both.begin(), both.begin() + 16), Each(0.0f));
  EXPECT_NE(both[16], 0.0f);
}

TEST_F(EncoderServiceTest, PoolingDimsAndFormatsAreTheClients) {
  v1::EncodeRequest request = HiddenRequest();
  request.mutable_outputs()->mutable_pooled()->set_pooling(v1::POOLING_CLS);
  request.mutable_outputs()->mutable_pooled()->set_normalize(false);
  request.mutable_outputs()->mutable_pooled()->set_dims(3);
  AddIds(request, {kCls, kHello, kSep});
  const v1::EncodeResponse response = Encode(request);
  const std::vector<float> rows = Floats(response.last_hidden_state());
  EXPECT_THAT(response.pooled().shape(), ElementsAre(1, 3));
  EXPECT_THAT(Floats(response.pooled()), ElementsAre(rows[0], rows[1], rows[2]));

  request.mutable_outputs()->set_dtype(v1::DTYPE_BF16);
  const v1::EncodeResponse half = Encode(request);
  EXPECT_EQ(half.last_hidden_state().dtype(), v1::DTYPE_BF16);
  EXPECT_EQ(half.last_hidden_state().data().size(), 3u * 16 * 2);
}

TEST_F(EncoderServiceTest, TruncationIsTheClients) {
  v1::EncodeRequest request = HiddenRequest();
  std::string text;
  for (int i = 0; i < 40; ++i) text += "hello ";
  request.mutable_sequences()->add_sequences()->set_text(text);
  const v1::EncodeResponse cut = Encode(request);
  EXPECT_EQ(cut.sequences(0).tokens(), kTinyMaxTextTokens);
  EXPECT_TRUE(cut.sequences(0).truncated());

  v1::EncodeRequest ids = HiddenRequest();
  ids.set_truncation(v1::TRUNCATION_RIGHT);
  AddIds(ids, std::vector<int32_t>(100, kHello));
  EXPECT_EQ(Encode(ids).sequences(0).tokens(), kTinyConfig.max_positions);
}

TEST_F(EncoderServiceTest, CountsRequestsAndTokens) {
  v1::EncodeRequest request = HiddenRequest();
  AddIds(request, {kCls, kHello, kSep, 0}, {true, true, true, false});
  Encode(request);
  EXPECT_EQ(server_.Metric(R"(attendant_tokens_total{kind="valid",model="tiny"})"), 3);
  EXPECT_EQ(server_.Metric(R"(attendant_tokens_total{kind="padding",model="tiny"})"), 1);
  EXPECT_EQ(server_.Metric(R"(attendant_requests_total{code="OK",method="encode",model="tiny"})"),
            1);
  EXPECT_EQ(server_.Metric(R"(attendant_inflight_requests{model="tiny"})"), 0);
}

TEST_F(EncoderServiceTest, ListsModels) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(server_.encoder().ListModels(&context, {}, &response).ok());
  ASSERT_THAT(response.models(), SizeIs(1));
  const v1::ModelInfo& model = response.models(0);
  EXPECT_EQ(model.name(), "tiny");
  EXPECT_EQ(model.state(), v1::MODEL_STATE_READY);
  EXPECT_EQ(model.dtype(), "f32");
  EXPECT_EQ(model.hidden(), 16);
  EXPECT_EQ(model.max_sequence_tokens(), 64);
  EXPECT_EQ(model.max_text_tokens(), 32);
  EXPECT_EQ(model.pooling(), v1::POOLING_MEAN);
  EXPECT_TRUE(model.normalize());
}

TEST_F(EncoderServiceTest, DeadlineEndsAWaitingRequest) {
  server_.run_gate().Close();
  server_.CallUntilCounted(
      R"(attendant_requests_total{code="DEADLINE_EXCEEDED",method="encode",model="tiny"})", [this] {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
        v1::EncodeResponse response;
        const grpc::Status status = server_.encoder().Encode(&context, HelloRequest(), &response);
        EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      });
  server_.run_gate().Open();
  Encode(HelloRequest());
}

TEST_F(EncoderServiceTest, CancelTakesARequestOutOfTheQueue) {
  server_.run_gate().Close();
  auto running = std::async(std::launch::async, [&] { return Encode(HelloRequest()); });
  server_.run_gate().AwaitWaiting(1);
  grpc::ClientContext context;
  auto queued = std::async(std::launch::async, [&] {
    v1::EncodeResponse response;
    return server_.encoder().Encode(&context, HelloRequest(), &response).error_code();
  });
  server_.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", 1);
  context.TryCancel();
  EXPECT_EQ(queued.get(), grpc::StatusCode::CANCELLED);
  server_.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", 0);
  server_.run_gate().Open();
  EXPECT_EQ(running.get().sequences_size(), 1);
}

TEST(EncoderServiceLimitsTest, FullQueueSaysWhenToComeBack) {
  InProcessServer::Options options;
  options.flags.max_queued_requests = 1;
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  const auto call = [&server] { return CallHello(server.encoder()); };
  auto running = std::async(std::launch::async, call);
  server.run_gate().AwaitWaiting(1);
  auto queued = std::async(std::launch::async, call);
  server.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", 1);

  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "mine");
  v1::EncodeResponse response;
  const grpc::Status refused = server.encoder().Encode(&context, HelloRequest(), &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("x-request-id"), 1u);
  EXPECT_TRUE(context.GetServerInitialMetadata().empty()) << "gRPC would not try again";

  grpc::ClientContext stream_context;
  stream_context.AddMetadata("x-request-id", "mine");
  const auto stream = server.encoder().EncodeStream(&stream_context);
  v1::EncodeStreamResponse answer;
  EXPECT_TRUE(stream->Write(HelloRequest()) && stream->WritesDone() && stream->Read(&answer));
  EXPECT_EQ(answer.error().code(), static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_EQ(stream_context.GetServerInitialMetadata().count("x-request-id"), 1u);
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(stream_context.GetServerTrailingMetadata().count("x-request-id"), 0u) << "once";

  server.run_gate().Open();
  EXPECT_TRUE(running.get().ok());
  EXPECT_TRUE(queued.get().ok());
}

}  // namespace
}  // namespace attendant
