// SPDX-License-Identifier: Apache-2.0
// From the messages of attendant.v1.Encoder to the server's own words: each field reaches its
// place.
#include "server/protocols/encoder/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr EncodeLimits kLimits = {.max_request_sequences = 3};

v1::EncodeRequest Texts(int count) {
  v1::EncodeRequest request;
  for (int i = 0; i < count; ++i) {
    request.mutable_sequences()->add_sequences()->set_text(std::to_string(i));
  }
  return request;
}

TEST(FromProtoTest, SoManySequencesAndNoMore) {
  EXPECT_EQ(FromProto(Texts(3), kLimits)->sequences.size(), 3u);
  const absl::Status refused = FromProto(Texts(4), kLimits).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("4"));
}

TEST(FromProtoTest, SequencesAreTextOrIds) {
  v1::EncodeRequest request = Texts(1);
  v1::TokenIds& ids = *request.mutable_sequences()->add_sequences()->mutable_ids();
  for (const int id : {7, 8}) ids.add_token_ids(id);
  for (const int segment : {0, 1}) ids.add_segment_ids(segment);
  for (const bool mask : {true, false}) ids.add_attention_mask(mask);
  const absl::StatusOr<EncodeInput> input = FromProto(request, kLimits);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(std::get<std::string>(input->sequences[0]), "0");
  const auto& read = std::get<IdsInput>(input->sequences[1]);
  EXPECT_THAT(read.token_ids, ElementsAre(7, 8));
  EXPECT_THAT(read.segment_ids, ElementsAre(0, 1));
  EXPECT_THAT(read.attention_mask, ElementsAre(1, 0));
}

TEST(FromProtoTest, APairHasTwoTexts) {
  v1::EncodeRequest request;
  v1::TextPair& pair = *request.mutable_sequences()->add_sequences()->mutable_pair();
  pair.set_first("query");
  pair.set_second("passage");
  const absl::StatusOr<EncodeInput> input = FromProto(request, kLimits);
  ASSERT_TRUE(input.ok()) << input.status();
  const auto& read = std::get<TextPair>(input->sequences[0]);
  EXPECT_EQ(*read.first, "query");
  EXPECT_EQ(read.second, "passage");
}

TEST(FromProtoTest, ScoresHaveAnActivation) {
  v1::EncodeRequest request = Texts(1);
  EXPECT_FALSE(FromProto(request, kLimits)->scores);
  v1::ScoreOutput& scores = *request.mutable_outputs()->mutable_scores();
  EXPECT_TRUE(FromProto(request, kLimits)->scores);
  EXPECT_EQ(FromProto(request, kLimits)->score_activation, std::nullopt);
  constexpr std::pair<v1::ScoreActivation, ScoreActivation> kActivations[] = {
      {v1::SCORE_ACTIVATION_NONE, ScoreActivation::kNone},
      {v1::SCORE_ACTIVATION_SIGMOID, ScoreActivation::kSigmoid},
      {v1::SCORE_ACTIVATION_SOFTMAX, ScoreActivation::kSoftmax}};
  for (const auto& [proto, activation] : kActivations) {
    scores.set_activation(proto);
    EXPECT_EQ(FromProto(request, kLimits)->score_activation, activation);
  }
}

TEST(ToProtoTest, ATextWithoutTokensHasOffsetsToo) {
  v1::EncodeRequest request = Texts(1);
  for (const bool asked : {false, true}) {
    request.mutable_outputs()->set_token_offsets(asked);
    EncodeOutput output;
    output.sequences.resize(2);
    output.sequences[1].token_ids = {7};
    v1::EncodeResponse response;
    ToProto(output, *AnswerFormFromProto(request), response);
    EXPECT_EQ(response.sequences(0).has_offsets(), asked);
    EXPECT_THAT(response.sequences(0).offsets().starts(), IsEmpty());
    EXPECT_FALSE(response.sequences(1).has_offsets()) << "ids";
  }
}

TEST(ToProtoTest, ScoresAreARowForEachSequence) {
  EncodeOutput output;
  output.scores = ScoreActivation::kNone;
  output.sequences.resize(2);
  output.sequences[0].scores = {1, 2, 3};
  output.sequences[1].scores = {4, 5, 6};
  v1::EncodeResponse response;
  ToProto(output, {}, response);
  EXPECT_THAT(response.scores().shape(), ElementsAre(2, 3));
  EXPECT_EQ(response.scores().data().size(), 24u);
  EXPECT_FALSE(response.has_pooled());
}

TEST(FromProtoTest, APaddedBatchIsCutIntoItsRows) {
  v1::EncodeRequest request;
  v1::PaddedBatch& padded = *request.mutable_padded();
  padded.set_batch(3);
  padded.set_seq(2);
  for (const int id : {1, 2, 3, 4, 5, 6}) padded.add_token_ids(id);
  for (const bool mask : {true, true, true, false, false, true}) padded.add_attention_mask(mask);
  const absl::StatusOr<EncodeInput> input = FromProto(request, kLimits);
  ASSERT_TRUE(input.ok()) << input.status();
  ASSERT_EQ(input->sequences.size(), 3u);
  const auto& last = std::get<IdsInput>(input->sequences[2]);
  EXPECT_THAT(last.token_ids, ElementsAre(5, 6));
  EXPECT_THAT(last.segment_ids, IsEmpty());
  EXPECT_THAT(last.attention_mask, ElementsAre(0, 1));
  EXPECT_TRUE(AnswerFormFromProto(request)->padded);
  padded.set_batch(4);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(request, kLimits).status()));
}

TEST(FromProtoTest, WhatIsNotSaidIsTheModels) {
  const absl::StatusOr<EncodeInput> input = FromProto(Texts(1), kLimits);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_FALSE(input->pooling.has_value());
  EXPECT_FALSE(input->normalize.has_value());
  EXPECT_FALSE(input->pooled || input->last_hidden_state || input->attention_weights);
  EXPECT_FALSE(input->token_strings);
  EXPECT_EQ(input->truncation, Truncation::kTextOnly);
  EXPECT_EQ(input->priority, 0);
}

TEST(FromProtoTest, EveryOptionReachesItsPlace) {
  v1::EncodeRequest request = Texts(1);
  request.set_priority(-7);
  request.set_truncation(v1::TRUNCATION_RIGHT);
  v1::OutputSelection& outputs = *request.mutable_outputs();
  outputs.set_last_hidden_state(true);
  outputs.mutable_pooled()->set_pooling(v1::POOLING_LAST);
  outputs.mutable_pooled()->set_normalize(false);
  outputs.mutable_pooled()->set_dims(5);
  outputs.mutable_attention_weights()->add_layers(1);
  outputs.mutable_attention_weights()->add_heads(2);
  outputs.add_hidden_layers(3);
  outputs.set_token_strings(true);
  outputs.set_token_ids(true);
  outputs.set_dtype(v1::DTYPE_F16);
  const absl::StatusOr<EncodeInput> input = FromProto(request, kLimits);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->priority, -7);
  EXPECT_EQ(input->truncation, Truncation::kRight);
  EXPECT_TRUE(input->last_hidden_state && input->pooled && input->attention_weights);
  EXPECT_EQ(input->pooling, Pooling::kLast);
  EXPECT_EQ(input->normalize, false);
  EXPECT_EQ(input->dims, 5);
  EXPECT_THAT(input->layers.attention_layers, ElementsAre(1));
  EXPECT_THAT(input->layers.attention_heads, ElementsAre(2));
  EXPECT_THAT(input->layers.hidden_layers, ElementsAre(3));
  EXPECT_TRUE(input->token_strings);
  const absl::StatusOr<AnswerForm> form = AnswerFormFromProto(request);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->numbers, NumberFormat::kF16);
  EXPECT_TRUE(form->token_ids);
  EXPECT_FALSE(form->padded);
  using Names = std::pair<v1::Pooling, Pooling>;
  for (const auto& [wire, pooling] : {Names{v1::POOLING_MEAN, Pooling::kMean},
                                      {v1::POOLING_CLS, Pooling::kCls},
                                      {v1::POOLING_MAX, Pooling::kMax},
                                      {v1::POOLING_LAST, Pooling::kLast}}) {
    outputs.mutable_pooled()->set_pooling(wire);
    EXPECT_EQ(FromProto(request, kLimits)->pooling, pooling);
  }
}

}  // namespace
}  // namespace attendant
