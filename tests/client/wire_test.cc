// SPDX-License-Identifier: Apache-2.0
#include "client/wire.h"
#include "client/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

v1::Tensor MakeTensor(v1::DType dtype, const std::vector<int64_t>& shape, std::string data) {
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_data(std::move(data));
  return tensor;
}

TEST(WireTest, DecodesBf16) {
  const absl::StatusOr<Tensor> tensor =
      FromProto(MakeTensor(v1::DTYPE_BF16, {2}, std::string("\x80\x3f\x00\xc0", 4)));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->values, ElementsAre(1.0f, -2.0f));
}

TEST(WireTest, DecodesF16) {
  // 1, -2, the largest (65504), the smallest normal (2^-14), the smallest (2^-24), infinity, NaN
  const std::string data("\x00\x3c\x00\xc0\xff\x7b\x00\x04\x01\x00\x00\x7c\x01\x7c", 14);
  const absl::StatusOr<Tensor> tensor = FromProto(MakeTensor(v1::DTYPE_F16, {7}, data));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  const std::vector<float>& values = tensor->values;
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 6),
              ElementsAre(1.0f, -2.0f, 65504.0f, std::ldexp(1.0f, -14), std::ldexp(1.0f, -24),
                          std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(std::isnan(values[6]));
}

TEST(WireTest, RefusesShapesThatDoNotFit) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_FALSE(FromProto(MakeTensor(v1::DTYPE_F32, {2}, "1234")).ok());
  EXPECT_FALSE(FromProto(MakeTensor(v1::DTYPE_F32, {-1}, "")).ok());
  EXPECT_FALSE(FromProto(MakeTensor(v1::DTYPE_F32, {kHuge, kHuge}, "")).ok());
  EXPECT_FALSE(FromProto(MakeTensor(v1::DTYPE_UNSPECIFIED, {1}, "12")).ok());
  EXPECT_TRUE(FromProto(MakeTensor(v1::DTYPE_F32, {0, 4}, "")).ok());
}

TEST(WireTest, RefusesRowsThatDoNotFitTheSequences) {
  v1::EncodeResponse response;
  response.add_sequences()->set_tokens(2);
  *response.mutable_last_hidden_state() = MakeTensor(v1::DTYPE_F32, {1, 1}, "1234");
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
  *response.mutable_last_hidden_state() = MakeTensor(v1::DTYPE_F32, {2, 1}, "12345678");
  EXPECT_TRUE(FromProto(response).ok());
}

TEST(WireTest, RefusesAbsurdNumbersOfTokens) {
  v1::EncodeResponse response;
  for (const int64_t tokens :
       {int64_t{-1}, int64_t{1} << 31, std::numeric_limits<int64_t>::min()}) {
    response.clear_sequences();
    response.add_sequences()->set_tokens(tokens);
    response.add_sequences()->set_tokens(1);
    EXPECT_TRUE(absl::IsInternal(FromProto(response).status())) << tokens;
  }
}

TEST(WireTest, ScoresHaveARowForEachSequence) {
  v1::EncodeResponse response;
  response.add_sequences();
  *response.mutable_scores() = MakeTensor(v1::DTYPE_F32, {2, 1}, "12345678");
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
  *response.mutable_scores() = MakeTensor(v1::DTYPE_F32, {1, 2}, "12345678");
  ASSERT_TRUE(FromProto(response).ok());
  EXPECT_EQ(FromProto(response)->scores.values.size(), 2u);
}

TEST(WireTest, SendsPairsAndScores) {
  EncodeRequest request{.sequences = {TextPair{.first = "query", .second = "passage"}},
                        .scores = ScoreActivation::kSigmoid};
  const absl::StatusOr<v1::EncodeRequest> proto = ToProto(request);
  ASSERT_TRUE(proto.ok()) << proto.status();
  EXPECT_EQ(proto->sequences().sequences(0).pair().first(), "query");
  EXPECT_EQ(proto->sequences().sequences(0).pair().second(), "passage");
  EXPECT_EQ(proto->outputs().scores().activation(), v1::SCORE_ACTIVATION_SIGMOID);
  request.sequences = {TextPair{.first = "a", .second = "b\xFF"}};
  EXPECT_TRUE(absl::IsInvalidArgument(ToProto(request).status()));
}

TEST(WireTest, SpansComeAndGo) {
  EncodeRequest request{.sequences = {std::string("one"), std::string("two")},
                        .spans = {{{.begin = 0, .end = 2}, {.begin = 1, .end = 3}}, {}},
                        .pooled = PooledOptions{.chunk_tokens = 7}};
  const absl::StatusOr<v1::EncodeRequest> proto = ToProto(request);
  ASSERT_TRUE(proto.ok()) << proto.status();
  EXPECT_THAT(proto->sequences().sequences(0).spans().begins(), ElementsAre(0, 1));
  EXPECT_THAT(proto->sequences().sequences(0).spans().ends(), ElementsAre(2, 3));
  EXPECT_FALSE(proto->sequences().sequences(1).has_spans());
  EXPECT_EQ(proto->outputs().pooled().chunk_tokens(), 7);
  request.spans.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(ToProto(request).status()));
}

TEST(WireTest, WordsAreThoseOfTheirSequences) {
  v1::EncodeResponse response;
  for (const int words : {1, 0, 2}) response.add_sequences()->set_words(words);
  for (const char* word : {"one", "two", "three"}) response.mutable_words()->add_words(word);
  *response.mutable_words()->mutable_weights() = MakeTensor(v1::DTYPE_F32, {3}, "123456789012");
  const absl::StatusOr<EncodeResult> result = FromProto(response);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->words.size(), 3u);
  EXPECT_THAT(result->words[0].words, ElementsAre("one"));
  EXPECT_TRUE(result->words[1].words.empty() && result->words[1].weights.empty());
  EXPECT_THAT(result->words[2].words, ElementsAre("two", "three"));
  EXPECT_EQ(result->words[2].weights.size(), 2u);
  for (const int words : {-1, 1, 3}) {
    response.mutable_sequences(2)->set_words(words);
    EXPECT_TRUE(absl::IsInternal(FromProto(response).status())) << words;
  }
  response.mutable_sequences(2)->set_words(2);
  response.mutable_words()->add_words("four");
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
}

TEST(WireTest, EmbeddingsHaveARowForEachSpan) {
  v1::EncodeResponse response;
  response.add_sequences()->set_tokens(1);
  v1::SequenceInfo& info = *response.add_sequences();
  info.set_tokens(4);
  for (const int begin : {0, 2}) {
    info.mutable_spans()->add_begins(begin);
    info.mutable_spans()->add_ends(begin + 2);
  }
  *response.mutable_pooled() = MakeTensor(v1::DTYPE_F32, {2, 1}, "12345678");
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
  *response.mutable_pooled() = MakeTensor(v1::DTYPE_F32, {3, 1}, "123456789012");
  const absl::StatusOr<EncodeResult> result = FromProto(response);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->sequences[0].spans.empty());
  ASSERT_EQ(result->sequences[1].spans.size(), 2u);
  EXPECT_EQ(result->sequences[1].spans[1].end, 4);
  for (const int end : {5, 1}) {
    info.mutable_spans()->set_ends(1, end);
    EXPECT_TRUE(absl::IsInternal(FromProto(response).status())) << end;
  }
  info.mutable_spans()->clear_ends();
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
}

TEST(WireTest, RefusesAttentionWeightsThatDoNotFitTheSequences) {
  v1::EncodeResponse response;
  response.add_sequences()->set_tokens(2);
  const std::string data(2 * 2 * 4, '\0');
  v1::Tensor& weights = *response.add_attention_weights();
  weights = MakeTensor(v1::DTYPE_F32, {1, 1, 2, 2}, data);
  ASSERT_TRUE(FromProto(response).ok());
  EXPECT_THAT(FromProto(response)->attention_weights[0].shape, ElementsAre(1, 1, 2, 2));
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 4, 1, 1}, {2, 2}, {1, 1, 4}}) {
    weights = MakeTensor(v1::DTYPE_F32, shape, data);
    EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
  }
  weights = MakeTensor(v1::DTYPE_F32, {1, 1, 2, 2}, data);
  *response.add_attention_weights() = weights;
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
}

TEST(WireTest, RefusesHiddenStatesAndTokensThatDoNotFitTheSequences) {
  v1::EncodeResponse response;
  response.add_sequences()->set_tokens(2);
  *response.mutable_hidden_states() = MakeTensor(v1::DTYPE_F32, {1, 2, 1}, "12345678");
  EXPECT_TRUE(FromProto(response).ok());
  response.mutable_sequences(0)->add_token_strings("one");
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
  response.mutable_sequences(0)->add_token_strings("two");
  EXPECT_TRUE(FromProto(response).ok());
  *response.mutable_hidden_states() = MakeTensor(v1::DTYPE_F32, {2, 1, 1}, "12345678");
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status()));
}

TEST(WireTest, TokensHaveTheirOffsets) {
  EncodeRequest request{.sequences = {std::string("one")}, .token_offsets = true};
  EXPECT_TRUE(ToProto(request)->outputs().token_offsets());
  request.token_offsets = false;
  EXPECT_FALSE(ToProto(request)->outputs().token_offsets());
  v1::EncodeResponse response;
  response.add_sequences()->set_tokens(2);
  EXPECT_TRUE(FromProto(response)->sequences[0].token_offsets.empty());
  v1::TokenOffsets& offsets = *response.mutable_sequences(0)->mutable_offsets();
  for (const int32_t start : {0, 3}) offsets.add_starts(start);
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status())) << "no ends";
  offsets.add_ends(3);
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status())) << "one end";
  offsets.add_ends(8);
  const auto result = FromProto(response);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->sequences[0].token_offsets, ElementsAre(Pair(0, 3), Pair(3, 8)));
  response.mutable_sequences(0)->set_tokens(3);
  EXPECT_TRUE(absl::IsInternal(FromProto(response).status())) << "of another length";
}

TEST(WireTest, NamesAVersionOfTheModel) {
  EXPECT_EQ(ToProto(EncodeRequest{.model = "toy"})->model_version(), "");
  EXPECT_EQ(ToProto(EncodeRequest{.model = "toy", .model_version = 12})->model_version(), "12");
}

TEST(WireTest, NamesAreUtf8) {
  EXPECT_EQ(ToProto(EncodeRequest{.model = "a\xff"}).status(),
            absl::InvalidArgumentError("model is not valid UTF-8 at byte 1"));
  EXPECT_EQ(ToProto(EncodeRequest{.prompt_name = "\xff"}).status(),
            absl::InvalidArgumentError("prompt_name is not valid UTF-8 at byte 0"));
}

TEST(WireTest, FindsInvalidUtf8) {
  constexpr size_t kNone = absl::string_view::npos;
  EXPECT_EQ(FindInvalidUtf8(""), kNone);
  EXPECT_EQ(FindInvalidUtf8("plain"), kNone);
  EXPECT_EQ(FindInvalidUtf8("\u00e9 \u4e2d \U0001f600 \ud7ff \ue000"), kNone);
  EXPECT_EQ(FindInvalidUtf8("ab\x80"), 2);            // continuation alone
  EXPECT_EQ(FindInvalidUtf8("a\xe4\xb8"), 1);         // cut short
  EXPECT_EQ(FindInvalidUtf8("\xc0\xaf"), 0);          // overlong, 2 bytes
  EXPECT_EQ(FindInvalidUtf8("\xe0\x9f\xbf"), 0);      // overlong, 3 bytes
  EXPECT_EQ(FindInvalidUtf8("\xf0\x8f\xbf\xbf"), 0);  // overlong, 4 bytes
  EXPECT_EQ(FindInvalidUtf8("\xed\xa0\x80"), 0);      // surrogate
  EXPECT_EQ(FindInvalidUtf8("\xf4\x90\x80\x80"), 0);  // past U+10FFFF
  EXPECT_EQ(FindInvalidUtf8("\xf5\x80\x80\x80"), 0);
}

}  // namespace
}  // namespace attendant::client
