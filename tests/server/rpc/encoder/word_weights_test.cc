// SPDX-License-Identifier: Apache-2.0
// Weights of words by attention: what BM42 is made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/server/encoder_rpc_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLen = 7;  // [CLS] hello ##lo world [UNK] hello [SEP]
constexpr int kHeads = 2;

v1::EncodeRequest WordsRequest(const std::vector<bool>& mask = {}) {
  v1::EncodeRequest request;
  request.set_model("tiny");
  AddIds(request, {kCls, kHello, kContinued, kWorld, kUnk, kHello, kSep}, mask);
  request.mutable_outputs()->mutable_word_weights();
  return request;
}

class WordWeightsTest : public EncoderRpcTest {
 protected:
  // How much the first token attends to each, in the last layer.
  std::vector<float> FirstRow(v1::EncodeRequest request) {
    request.mutable_outputs()->clear_word_weights();
    request.mutable_outputs()->mutable_attention_weights()->add_layers(kTinyConfig.layers - 1);
    const std::vector<float> all = Floats(Encode(request).attention_weights(0));
    std::vector<float> row(kLen);
    for (size_t i = 0; i < kLen; ++i) row[i] = (all[i] + all[kLen * kLen + i]) / kHeads;
    return row;
  }
};

TEST_F(WordWeightsTest, AreTheFirstRowSummedOverTheTokensOfAWord) {
  const std::vector<float> row = FirstRow(WordsRequest());
  const v1::EncodeResponse response = Encode(WordsRequest());
  EXPECT_THAT(response.words().words(), ElementsAre("hellolo", "world", "hello"));
  EXPECT_EQ(response.sequences(0).words(), 3);
  const std::vector<float> weights = Floats(response.words().weights());
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_NEAR(weights[0], row[1] + row[2], 1e-6);
  EXPECT_NEAR(weights[1], row[3], 1e-6);
  EXPECT_NEAR(weights[2], row[5], 1e-6);
  EXPECT_FALSE(response.has_pooled());
  EXPECT_EQ(response.attention_weights_size(), 0);
}

TEST(WordWeightsLimitTest, TheMessageSpeaksOfWords) {
  InProcessServer::Options options;
  options.flags.encode.max_attention_weight_bytes = kHeads * kLen * 4 - 1;
  InProcessServer server(options);
  server.AwaitReady();
  EXPECT_THAT(
      server.Refusal(WordsRequest()),
      HasSubstr("the word weights asked for take 56 bytes up to sequence 0, the limit is 55: "
                "ask for fewer tokens"));
}

TEST_F(WordWeightsTest, LeaveMaskedTokensOut) {
  const std::vector<bool> mask = {true, true, false, false, true, true, true};
  const std::vector<float> row = FirstRow(WordsRequest(mask));
  v1::EncodeRequest request = WordsRequest(mask);
  *request.mutable_sequences()->add_sequences() = request.sequences().sequences(0);
  v1::TokenIds& empty = *request.mutable_sequences()->mutable_sequences(0)->mutable_ids();
  for (int i = 0; i < kLen; ++i) empty.set_attention_mask(i, false);
  const v1::EncodeResponse response = Encode(request);
  EXPECT_EQ(response.sequences(0).words(), 0);
  EXPECT_THAT(response.words().words(), ElementsAre("hello", "hello"));
  const std::vector<float> weights = Floats(response.words().weights());
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[0], row[1], 1e-6);
  EXPECT_NEAR(weights[1], row[5], 1e-6);
}

TEST_F(WordWeightsTest, AreNotAskedForBesideAttentionWeights) {
  v1::EncodeRequest request = WordsRequest();
  request.mutable_outputs()->mutable_attention_weights();
  EXPECT_THAT(Refusal(request), HasSubstr("attention weights or for word weights"));
}

TEST(WordWeightsLimitTest, CountOneRowOfEachHead) {
  InProcessServer::Options options;
  options.flags.encode.max_attention_weight_bytes = kHeads * kLen * sizeof(float);
  InProcessServer server(options);
  server.AwaitReady();
  v1::EncodeRequest request = WordsRequest();
  server.Encode(request);
  *request.mutable_sequences()->add_sequences() = request.sequences().sequences(0);
  EXPECT_THAT(server.Refusal(request), HasSubstr("take 112 bytes up to sequence 1"));
}

}  // namespace
}  // namespace attendant
