// SPDX-License-Identifier: Apache-2.0
#include "client/attention_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Ones(std::vector<int64_t> shape) {
  size_t count = 1;
  for (int64_t dim : shape) count *= static_cast<size_t>(dim);
  return {.shape = std::move(shape), .values = std::vector<float>(count, 1)};
}

TEST(AttentionWireTest, EveryKindFillsItsOwnMessage) {
  const std::pair<const char*, v1::AttendRequest::KindCase> kinds[] = {
      {"scaled_dot_product", v1::AttendRequest::kScaledDotProduct},
      {"flash", v1::AttendRequest::kScaledDotProduct},
      {"multi_head", v1::AttendRequest::kMultiHead},
      {"additive", v1::AttendRequest::kAdditive},
      {"luong_dot", v1::AttendRequest::kLuong},
      {"luong_general", v1::AttendRequest::kLuong},
      {"luong_concat", v1::AttendRequest::kLuong},
      {"local", v1::AttendRequest::kLocal},
      {"strided", v1::AttendRequest::kStrided},
      {"linear", v1::AttendRequest::kLinear},
      {"linformer", v1::AttendRequest::kLinformer}};
  for (const auto& [name, kind] : kinds) {
    const auto proto = ToProto(AttendRequest{.kind = name, .query = Ones({1, 2, 3})});
    ASSERT_TRUE(proto.ok()) << proto.status();
    EXPECT_EQ(proto->kind_case(), kind) << name;
  }
}

TEST(AttentionWireTest, AModelsNameIsUtf8) {
  EXPECT_EQ(ToProto(AttendRequest{.model = "\xff", .query = Ones({1, 2, 3})}).status(),
            absl::InvalidArgumentError("model is not valid UTF-8 at byte 0"));
}

TEST(AttentionWireTest, CarriesWhatWasAsked) {
  AttendRequest request{
      .kind = "additive", .query = Ones({1, 2, 3}), .causal = true, .priority = 7};
  request.key = Ones({1, 4, 3});
  request.parameters["score_weight"] = Ones({5});
  request.mask = BoolTensor{.shape = {2, 4}, .values = {1, 0, 1, 0, 1, 1, 1, 1}};
  request.scale = 0.5f;
  request.attention_weights = WeightsOutput::kAveraged;
  request.compute_dtype = DType::kBf16;
  request.dtype = DType::kF16;
  request.positions.kind = AttentionPositions::Kind::kRotary;
  const auto proto = ToProto(request);
  ASSERT_TRUE(proto.ok()) << proto.status();
  EXPECT_EQ(proto->query().dtype(), v1::DTYPE_F16);
  EXPECT_EQ(proto->query().data().size(), 12u);
  EXPECT_THAT(proto->key().shape(), ElementsAre(1, 4, 3));
  EXPECT_FALSE(proto->has_value());
  EXPECT_THAT(proto->additive().score_weight().shape(), ElementsAre(5));
  EXPECT_FALSE(proto->additive().has_query_weight());
  EXPECT_EQ(proto->mask().dtype(), v1::DTYPE_BOOL);
  EXPECT_EQ(proto->mask().data(), std::string("\1\0\1\0\1\1\1\1", 8));
  EXPECT_TRUE(proto->causal());
  EXPECT_EQ(proto->scale(), 0.5f);
  EXPECT_EQ(proto->weights(), v1::ATTENTION_WEIGHTS_AVERAGED);
  EXPECT_EQ(proto->compute_dtype(), v1::DTYPE_BF16);
  EXPECT_EQ(proto->priority(), 7);
  EXPECT_TRUE(proto->has_rotary());
}

TEST(AttentionWireTest, RefusesWhatCannotBe) {
  AttendRequest unknown{.kind = "none", .query = Ones({1, 2, 3})};
  EXPECT_THAT(std::string(ToProto(unknown).status().message()), HasSubstr("no kind 'none'"));
  AttendRequest other{.kind = "local", .query = Ones({1, 2, 3})};
  other.parameters["weight"] = Ones({1});
  EXPECT_THAT(std::string(ToProto(other).status().message()),
              HasSubstr("'weight' is no parameter of local"));
  AttendRequest short_one{.query = Ones({1, 2, 3})};
  short_one.query.shape = {1, 2, 4};
  EXPECT_THAT(std::string(ToProto(short_one).status().message()),
              HasSubstr("query has 6 values for shape [1, 2, 4]"));
  AttendRequest uneven{.query = Ones({1, 9})};
  uneven.query.shape = {4, 2};  // 9 / 4 / 2 is 1 too
  EXPECT_THAT(std::string(ToProto(uneven).status().message()),
              HasSubstr("query has 9 values for shape [4, 2]"));
}

TEST(AttentionWireTest, AnOfferHasEveryLimit) {
  v1::ListAttentionResponse response;
  response.mutable_limits()->set_max_attention_tokens(1);
  response.mutable_limits()->set_max_attention_bytes(2);
  response.mutable_limits()->set_max_attention_operations(3);
  response.mutable_limits()->set_max_response_bytes(4);
  response.mutable_limits()->set_max_request_bytes(5);
  const AttentionOffer offer = FromProto(response);
  EXPECT_EQ(offer.max_attention_tokens, 1);
  EXPECT_EQ(offer.max_attention_bytes, 2);
  EXPECT_EQ(offer.max_attention_operations, 3);
  EXPECT_EQ(offer.max_response_bytes, 4);
  EXPECT_EQ(offer.max_request_bytes, 5);
}

TEST(AttentionWireTest, DistrustsAnswers) {
  v1::AttendRequest request;
  for (const int64_t dim : {1, 2, 4}) request.mutable_query()->add_shape(dim);
  v1::AttendResponse response;
  v1::Tensor& output = *response.mutable_output();
  output.set_dtype(v1::DTYPE_F32);
  for (const int64_t dim : {1, 2, 1}) output.add_shape(dim);
  output.set_data("1234");
  EXPECT_TRUE(absl::IsInternal(FromProto(response, request).status()));
  output.set_data("12345678");
  EXPECT_TRUE(FromProto(response, request).ok());
  v1::Tensor& weights = *response.mutable_weights();
  weights.set_dtype(v1::DTYPE_F32);
  weights.add_shape(-1);
  EXPECT_TRUE(absl::IsInternal(FromProto(response, request).status()));

  weights.clear_shape();
  for (const int64_t dim : {1, 1, 2}) weights.add_shape(dim);
  weights.set_data("12345678");
  EXPECT_EQ(FromProto(response, request).status(),
            absl::InternalError(
                "the answer's weights has shape [1, 1, 2] for a query of shape [1, 2, 4]"));
  weights.set_shape(1, 2);
  weights.set_shape(2, 1);
  EXPECT_TRUE(FromProto(response, request).ok());
  output.set_shape(1, 1);
  output.set_shape(2, 2);
  EXPECT_EQ(FromProto(response, request).status(),
            absl::InternalError(
                "the answer's output has shape [1, 1, 2] for a query of shape [1, 2, 4]"));
  output.clear_shape();
  output.add_shape(2);
  EXPECT_TRUE(absl::IsInternal(FromProto(response, request).status()));
}

}  // namespace
}  // namespace attendant::client
