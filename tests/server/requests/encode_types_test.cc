// SPDX-License-Identifier: Apache-2.0
// Attention weights, inner hidden states and token strings over attendant.v1.
#include "server/requests/encode_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "server/requests/memory/memory_budgets.h"
#include "tests/server/encoder_rpc_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kHelloLen = 4;                          // [CLS] hello world [SEP]
constexpr int64_t kHelloWeightBytes = 2 * 2 * 4 * 4 * 4;  // of all layers and heads

std::vector<float> Part(const std::vector<float>& values, int64_t begin, int64_t count) {
  return {values.begin() + begin, values.begin() + begin + count};
}

v1::EncodeRequest WeightsRequest() {
  v1::EncodeRequest request = HelloRequest();
  request.mutable_outputs()->mutable_attention_weights();
  return request;
}

class LayerOutputsRpcTest : public EncoderRpcTest {};

EncodeInput With(void (*ask)(EncodeInput&)) {
  EncodeInput input;
  ask(input);
  return input;
}

TEST(EncodeInputTest, KnowsTheOutputsOfEachKind) {
  EXPECT_FALSE(EncodeInput().names_embeddings());
  EXPECT_FALSE(EncodeInput().wants_internals());
  EXPECT_TRUE(With([](EncodeInput& input) { input.pooled = true; }).names_embeddings());
  EXPECT_TRUE(With([](EncodeInput& input) { input.chunk_tokens = 2; }).names_embeddings());
  EXPECT_FALSE(With([](EncodeInput& input) {
                 input.pooled = input.scores = true;
                 input.tasks.emplace_back();
               }).wants_internals());
  EXPECT_TRUE(With([](EncodeInput& input) { input.last_hidden_state = true; }).wants_internals());
  EXPECT_TRUE(With([](EncodeInput& input) { input.attention_weights = true; }).wants_internals());
  EXPECT_TRUE(With([](EncodeInput& input) { input.word_weights = true; }).wants_internals());
  EXPECT_TRUE(With([](EncodeInput& input) { input.layers.hidden_layers = {0}; }).wants_internals());
}

TEST_F(LayerOutputsRpcTest, GivesTheWeightsOfAllLayersAndHeads) {
  const v1::EncodeResponse response = Encode(WeightsRequest());
  ASSERT_THAT(response.attention_weights(), SizeIs(1));
  EXPECT_THAT(response.attention_weights(0).shape(), ElementsAre(2, 2, kHelloLen, kHelloLen));
  const std::vector<float> weights = Floats(response.attention_weights(0));
  ASSERT_THAT(weights, SizeIs(2 * 2 * kHelloLen * kHelloLen));
  for (auto row = weights.begin(); row != weights.end(); row += kHelloLen) {
    EXPECT_NEAR(std::accumulate(row, row + kHelloLen, 0.0), 1.0, 1e-5);
  }
  // Who asks for weights alone gets them alone.
  EXPECT_FALSE(response.has_pooled());
  EXPECT_FALSE(response.has_last_hidden_state());
  EXPECT_FALSE(response.has_hidden_states());
  EXPECT_THAT(response.sequences(0).token_strings(), SizeIs(0));
}

TEST_F(LayerOutputsRpcTest, LooksWhereItIsToldTo) {
  const std::vector<float> all = Floats(Encode(WeightsRequest()).attention_weights(0));
  v1::EncodeRequest request = WeightsRequest();
  v1::AttentionSelection& chosen = *request.mutable_outputs()->mutable_attention_weights();
  chosen.add_layers(1);
  chosen.add_heads(1);
  chosen.add_heads(0);
  request.mutable_outputs()->mutable_pooled();
  const v1::EncodeResponse response = Encode(request);
  EXPECT_THAT(response.attention_weights(0).shape(), ElementsAre(1, 2, kHelloLen, kHelloLen));
  const std::vector<float> weights = Floats(response.attention_weights(0));
  constexpr int64_t kMap = kHelloLen * kHelloLen;
  EXPECT_EQ(Part(weights, 0, kMap), Part(all, 3 * kMap, kMap));
  EXPECT_EQ(Part(weights, kMap, kMap), Part(all, 2 * kMap, kMap));
  EXPECT_TRUE(response.has_pooled());
}

TEST_F(LayerOutputsRpcTest, WritesTheFormatAskedFor) {
  const std::vector<float> expected = Floats(Encode(WeightsRequest()).attention_weights(0));
  v1::EncodeRequest request = WeightsRequest();
  request.mutable_outputs()->set_dtype(v1::DTYPE_BF16);
  const v1::Tensor tensor = Encode(request).attention_weights(0);
  EXPECT_EQ(tensor.dtype(), v1::DTYPE_BF16);
  ASSERT_EQ(tensor.data().size(), 2 * expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, tensor.data().data() + 2 * i, 2);
    EXPECT_NEAR(std::bit_cast<float>(static_cast<uint32_t>(half) << 16), expected[i], 4e-3);
  }
}

TEST_F(LayerOutputsRpcTest, TellsTheTokensThatWeightsBelongTo) {
  v1::EncodeRequest request = WeightsRequest();
  request.mutable_outputs()->set_token_strings(true);
  request.mutable_sequences()->mutable_sequences(0)->set_text("Hello, world");
  AddIds(request, {kCls, 63, kSep});
  const v1::EncodeResponse response = Encode(request);
  EXPECT_THAT(response.sequences(0).token_strings(),
              ElementsAre("[CLS]", "hello", "[UNK]", "world", "[SEP]"));
  EXPECT_THAT(response.sequences(1).token_strings(), ElementsAre("[CLS]", "", "[SEP]"));
}

TEST_F(LayerOutputsRpcTest, MaskedTokensHaveZeroRowsAndColumns) {
  v1::EncodeRequest request = WeightsRequest();
  request.clear_sequences();
  request.mutable_outputs()->add_hidden_layers(0);
  const std::vector<bool> mask = {true, false, true, true, false};
  AddIds(request, {kCls, kHello, kWorld, kSep, kHello}, mask);
  const v1::EncodeResponse response = Encode(request);
  const std::vector<float> weights = Floats(response.attention_weights(0));
  ASSERT_THAT(weights, SizeIs(2 * 2 * 5 * 5));
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool seen = mask[i / 5 % 5] && mask[i % 5];
    EXPECT_EQ(weights[i] > 0, seen) << i;
  }
  for (auto row = weights.begin(); row != weights.end(); row += 5) {
    const bool kept = mask[static_cast<size_t>((row - weights.begin()) / 5 % 5)];
    EXPECT_NEAR(std::accumulate(row, row + 5, 0.0), kept ? 1.0 : 0.0, 1e-5);
  }
  const std::vector<float> states = Floats(response.hidden_states());
  EXPECT_THAT(Part(states, 1 * 16, 16), Each(0.0f));
  EXPECT_THAT(Part(states, 4 * 16, 16), Each(0.0f));
  EXPECT_NE(states[0], 0.0f);
  EXPECT_NE(states[3 * 16], 0.0f);
}

TEST_F(LayerOutputsRpcTest, FullyMaskedSequenceHasZerosOnly) {
  v1::EncodeRequest request = WeightsRequest();
  request.mutable_outputs()->add_hidden_layers(1);
  AddIds(request, {kCls, kHello, kSep}, {false, false, false});
  const v1::EncodeResponse response = Encode(request);
  const std::vector<float> weights = Floats(response.attention_weights(1));
  EXPECT_THAT(weights, SizeIs(2 * 2 * 3 * 3));
  EXPECT_THAT(weights, Each(0.0f));
  EXPECT_THAT(response.hidden_states().shape(), ElementsAre(1, kHelloLen + 3, 16));
  EXPECT_THAT(Part(Floats(response.hidden_states()), kHelloLen * 16, 3 * 16), Each(0.0f));
}

TEST_F(LayerOutputsRpcTest, GivesHiddenStatesBetweenLayers) {
  v1::EncodeRequest request = HelloRequest();
  AddIds(request, {kCls, kWorld, kSep});
  request.mutable_outputs()->set_last_hidden_state(true);
  for (const int layer : {2, 0}) request.mutable_outputs()->add_hidden_layers(layer);
  const v1::EncodeResponse response = Encode(request);
  EXPECT_THAT(response.hidden_states().shape(), ElementsAre(2, kHelloLen + 3, 16));
  const std::vector<float> states = Floats(response.hidden_states());
  const std::vector<float> last = Floats(response.last_hidden_state());
  const auto size = static_cast<int64_t>(last.size());
  EXPECT_EQ(Part(states, 0, size), last);
  EXPECT_NE(Part(states, size, size), last);
  // [CLS] at the first place is the same before any layer has looked around.
  EXPECT_EQ(Part(states, size, 16), Part(states, size + kHelloLen * 16, 16));
}

TEST_F(LayerOutputsRpcTest, PaddedBatchHasOneShapeForEveryRow) {
  v1::EncodeRequest ragged = WeightsRequest();
  ragged.clear_sequences();
  ragged.mutable_outputs()->add_hidden_layers(1);
  AddIds(ragged, {kCls, kHello, kSep});
  AddIds(ragged, {kCls, kSep});
  const v1::EncodeResponse expected = Encode(ragged);
  v1::EncodeRequest padded = ragged;
  v1::PaddedBatch& batch = *padded.mutable_padded();
  batch.set_batch(2);
  batch.set_seq(3);
  for (const int id : {kCls, kHello, kSep, kCls, kSep, 0}) batch.add_token_ids(id);
  for (const bool keep : {true, true, true, true, true, false}) batch.add_attention_mask(keep);
  const v1::EncodeResponse response = Encode(padded);
  ASSERT_THAT(response.attention_weights(), SizeIs(2));
  EXPECT_EQ(response.attention_weights(0).data(), expected.attention_weights(0).data());
  EXPECT_THAT(response.attention_weights(1).shape(), ElementsAre(2, 2, 3, 3));
  const std::vector<float> weights = Floats(response.attention_weights(1));
  const std::vector<float> alone = Floats(expected.attention_weights(1));
  EXPECT_EQ(Part(weights, 0, 2), Part(alone, 0, 2));
  EXPECT_EQ(weights[2], 0);
  EXPECT_THAT(response.hidden_states().shape(), ElementsAre(1, 2, 3, 16));
  const std::vector<float> states = Floats(response.hidden_states());
  EXPECT_EQ(Part(states, 0, 5 * 16), Floats(expected.hidden_states()));
  EXPECT_THAT(Part(states, 5 * 16, 16), Each(0.0f));
}

TEST_F(LayerOutputsRpcTest, RefusesNumbersThatTheModelDoesNotHave) {
  const auto expect = [this](void (*spoil)(v1::OutputSelection&), const std::string& message) {
    v1::EncodeRequest request = WeightsRequest();
    spoil(*request.mutable_outputs());
    EXPECT_THAT(Refusal(request), HasSubstr(message));
    EXPECT_TRUE(CallHello(server_.encoder()).ok());
  };
  expect([](auto& o) { o.mutable_attention_weights()->add_layers(2); },
         "attention_weights.layers[0] is 2, it must be from 0 to 1 (the model has 2 layers)");
  expect([](auto& o) { o.mutable_attention_weights()->add_layers(-1); }, "layers[0] is -1");
  expect(
      [](auto& o) {
        o.mutable_attention_weights()->add_heads(0);
        o.mutable_attention_weights()->add_heads(2);
      },
      "attention_weights.heads[1] is 2, it must be from 0 to 1 (the model has 2 heads)");
  expect(
      [](auto& o) {
        for (int i = 0; i < 100000; ++i) o.mutable_attention_weights()->add_heads(i % 2);
      },
      "attention_weights.heads[2] is 0 again");
  expect([](auto& o) { o.add_hidden_layers(3); }, "hidden_layers[0] is 3, it must be from 0 to 2");
}

InProcessServer::Options LimitWeights(int64_t max_bytes) {
  InProcessServer::Options options;
  options.flags.encode.max_attention_weight_bytes = max_bytes;
  options.flags.max_batch_sequences = 1;  // requests of several sequences are split
  return options;
}

class LimitedWeightsTest : public EncoderRpcTest {
 protected:
  LimitedWeightsTest() : EncoderRpcTest(LimitWeights(2 * kHelloWeightBytes)) {}
};

TEST_F(LimitedWeightsTest, RefusesTooManyBeforeAnythingRuns) {
  v1::EncodeRequest request = WeightsRequest();
  for (int i = 0; i < 2; ++i) request.mutable_sequences()->add_sequences()->set_text("hello world");
  EXPECT_THAT(
      Refusal(request),
      HasSubstr("the attention weights asked for take 768 bytes up to sequence 2, the limit "
                "is 512"));
  EXPECT_EQ(server_.Metric(R"(attendant_batches_total{model="tiny"})"), 0);
  EXPECT_TRUE(CallHello(server_.encoder()).ok());

  grpc::ClientContext context;
  const auto stream = server_.encoder().EncodeStream(&context);
  ASSERT_TRUE(stream->Write(request));
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(answer.error().message(), HasSubstr("768 bytes"));
  ASSERT_TRUE(stream->Write(WeightsRequest()));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(answer.response().attention_weights(), SizeIs(1));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A sequence to a batch: the answer is put together from several.
TEST_F(LimitedWeightsTest, ComesTogetherFromSeveralBatches) {
  const std::string alone = Encode(WeightsRequest()).attention_weights(0).data();
  v1::EncodeRequest request = WeightsRequest();
  AddIds(request, {kCls, kHello, kWorld, kSep});
  const v1::EncodeResponse response = Encode(request);
  ASSERT_THAT(response.attention_weights(), SizeIs(2));
  EXPECT_EQ(response.attention_weights(0).data(), alone);
  EXPECT_EQ(response.attention_weights(1).data(), alone);
  EXPECT_EQ(server_.Metric(R"(attendant_batches_total{model="tiny"})"), 3);
}

TEST(NoWeightsTest, AreGivenWhereTheServerForbidsIt) {
  InProcessServer server(LimitWeights(0));
  server.AwaitReady();
  EXPECT_THAT(server.Refusal(WeightsRequest()), HasSubstr("the limit is 0"));
  EXPECT_TRUE(CallHello(server.encoder()).ok());
}

// Weights count towards what answers may hold together.
TEST(PendingWeightsTest, AreAccountedFor) {
  InProcessServer::Options options;
  constexpr int64_t kAccounted = kHelloWeightBytes + kSequenceBytes + kAnswerBytes;
  options.flags.memory.max_pending_response_bytes = kAccounted + 1;
  options.flags.encode.max_response_bytes = kHelloWeightBytes + 1;
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  std::thread first([&server] { server.Encode(WeightsRequest()); });
  server.run_gate().AwaitWaiting(1);
  v1::EncodeResponse response;
  const grpc::Status status = CallEncode(server.encoder(), WeightsRequest(), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("hold 2304 bytes and this one takes 2304"));
  server.run_gate().Open();
  first.join();
}

}  // namespace
}  // namespace attendant
