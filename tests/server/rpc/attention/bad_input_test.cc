// SPDX-License-Identifier: Apache-2.0
// Every way to ask wrongly for attention gets a clear status, and the next request its answer.
#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "tests/server/rpc/attention/fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr grpc::StatusCode kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

struct BadInput {
  const char* name;
  std::function<void(v1::AttendRequest&)> spoil;  // of OnesRequest
  const char* message;                            // a part of it
  grpc::StatusCode code = kInvalid;
};

void SetShape(v1::Tensor& tensor, std::initializer_list<int64_t> shape) {
  tensor.clear_shape();
  for (int64_t dim : shape) tensor.add_shape(dim);
}

void SetBool(v1::Tensor& tensor, const std::vector<int64_t>& shape) {
  Fill(tensor, shape);
  tensor.set_dtype(v1::DTYPE_BOOL);
  tensor.set_data(std::string(tensor.data().size() / sizeof(float), '\1'));
}

const BadInput kBadInputs[] = {
    {"NoQuery", [](auto& r) { r.clear_query(); }, "query is not set"},
    {"ValueWithoutKey",
     [](auto& r) {
       Fill(*r.mutable_value(), {2, 3, 4});
     },
     "value is set, key is not"},
    {"UnknownModel", [](auto& r) { r.set_model("nobody"); }, "'nobody'",
     grpc::StatusCode::NOT_FOUND},
    {"Encoder", [](auto& r) { r.set_model("tiny"); }, "is an encoder"},
    {"LongId", [](auto& r) { r.set_id(std::string(257, 'x')); }, "id has 257 bytes"},
    {"Priority", [](auto& r) { r.set_priority(101); }, "priority is 101"},
    {"Rank1", [](auto& r) { Fill(*r.mutable_query(), {4}); }, "query: shape is [4]"},
    {"Rank5",
     [](auto& r) {
       Fill(*r.mutable_query(), {1, 1, 1, 1, 1});
     },
     "query has 5 dims"},
    {"ZeroDim",
     [](auto& r) {
       SetShape(*r.mutable_query(), {0, 3, 4});
     },
     "query: shape is [0, 3, 4], every dim must be at least 1"},
    {"EndlessBatchOfNothing",
     [](auto& r) {
       SetShape(*r.mutable_query(), {kHuge, 0, 4});
       r.mutable_query()->clear_data();
     },
     "every dim must be at least 1"},
    {"NegativeDim",
     [](auto& r) {
       SetShape(*r.mutable_query(), {2, -3, -4});
     },
     "at least 1"},
    {"Overflow",
     [](auto& r) {
       SetShape(*r.mutable_query(), {kHuge, kHuge, 4});
     },
     "data has 96 bytes"},
    {"ShortData", [](auto& r) { r.mutable_query()->mutable_data()->pop_back(); },
     "query: shape is [2, 3, 4] of 4 bytes a value, data has 95 bytes"},
    {"BoolQuery",
     [](auto& r) {
       SetBool(*r.mutable_query(), {2, 3, 4});
     },
     "query.dtype is BOOL"},
    {"UnknownDType", [](auto& r) { r.mutable_query()->set_dtype(static_cast<v1::DType>(77)); },
     "query.dtype is 77"},
    {"OtherRankOfKey",
     [](auto& r) {
       Fill(*r.mutable_key(), {2, 1, 3, 4});
     },
     "key: shape is [2, 1, 3, 4], query's is [2, 3, 4]"},
    {"Rank1OfKey", [](auto& r) { Fill(*r.mutable_key(), {4}); },
     "key: shape is [4], query's is [2, 3, 4]: they must have as many dims"},
    {"Rank1OfValue",
     [](auto& r) {
       Fill(*r.mutable_key(), {2, 3, 4});
       Fill(*r.mutable_value(), {4});
     },
     "value: shape is [4], query's is [2, 3, 4]: they must have as many dims"},
    {"OtherBatchOfKey",
     [](auto& r) {
       Fill(*r.mutable_key(), {3, 3, 4});
     },
     "query has 2 sequences, key has 3"},
    {"OtherDimOfKey",
     [](auto& r) {
       Fill(*r.mutable_key(), {2, 3, 5});
     },
     "5"},
    {"OtherTokensOfValue",
     [](auto& r) {
       Fill(*r.mutable_key(), {2, 3, 4});
       Fill(*r.mutable_value(), {2, 4, 4});
     },
     "value: shape is [2, 4, 4], key's is [2, 3, 4]"},
    {"KeyLengthsAlone", [](auto& r) { r.add_key_lengths(3); }, "key_lengths has 1 values"},
    {"LengthsDoNotSumUp",
     [](auto& r) {
       Fill(*r.mutable_query(), {6, 4});
       r.add_query_lengths(5);
     },
     "query_lengths sum up to 5, query has 6 rows"},
    {"LengthsBeyond",
     [](auto& r) {
       Fill(*r.mutable_query(), {6, 4});
       r.add_query_lengths(2);
       r.add_query_lengths(kHuge);
     },
     "query_lengths[1] is 9223372036854775807, it must be from 1 to the 4 rows"},
    {"MaskOfOtherShape",
     [](auto& r) {
       SetBool(*r.mutable_mask(), {3, 7});
     },
     "the mask is [1, 1, 3, 7]"},
    {"MaskOfRank1", [](auto& r) { SetBool(*r.mutable_mask(), {3}); }, "mask: shape is [3]"},
    {"PaddingOfOtherShape",
     [](auto& r) {
       SetBool(*r.mutable_key_padding_mask(), {2, 4});
     },
     "key_padding_mask: shape is [2, 4], key's tokens are [2, 3]"},
    {"PaddingOfNumbers",
     [](auto& r) {
       Fill(*r.mutable_key_padding_mask(), {2, 3});
     },
     "key_padding_mask.dtype must be BOOL"},
    {"InfiniteScale", [](auto& r) { r.set_scale(std::numeric_limits<float>::infinity()); },
     "must be finite"},
    {"UnknownWeights", [](auto& r) { r.set_weights(static_cast<v1::AttentionWeightsOutput>(9)); },
     "weights is 9"},
    {"UnknownAnswerDType", [](auto& r) { r.set_dtype(static_cast<v1::DType>(9)); }, "dtype is 9"},
    {"F16Compute", [](auto& r) { r.set_compute_dtype(v1::DTYPE_F16); }, "compute_dtype is 3"},
    {"FlashWeights",
     [](auto& r) {
       r.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_FLASH);
       r.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
     },
     "weights", grpc::StatusCode::UNIMPLEMENTED},
    {"NegativeWindow", [](auto& r) { r.mutable_local()->set_window(-1); }, "local.window is -1"},
    {"NegativeBlock", [](auto& r) { r.mutable_strided()->set_block(-5); }, "strided.block is -5"},
    {"NoParameters", [](auto& r) { r.mutable_additive(); }, "parameter 'query_weight' is missing"},
    {"OtherShapeOfParameter",
     [](auto& r) {
       Fill(*r.mutable_additive()->mutable_query_weight(), {5, 3});
     },
     "parameter 'query_weight' is [5, 3], expected [any, 4]"},
    {"NoWeightsOfMultiHead", [](auto& r) { r.mutable_multi_head()->set_heads(2); },
     "multi_head.query_weight has 0 dims"},
    {"HeadsDoNotDivide",
     [](auto& r) {
       v1::MultiHeadAttention& kind = *r.mutable_multi_head();
       kind.set_heads(3);
       for (auto* w : {kind.mutable_query_weight(), kind.mutable_key_weight(),
                       kind.mutable_value_weight(), kind.mutable_output_weight()}) {
         Fill(*w, {4, 4});
       }
     },
     "multi_head: "},
    {"OddRotary",
     [](auto& r) {
       Fill(*r.mutable_query(), {2, 3, 5});
       r.mutable_rotary();
     },
     "query has 5 dims"},
    {"NegativeBase", [](auto& r) { r.mutable_rotary()->set_base(-1); }, "rotary.base is -1"},
    {"NoTable", [](auto& r) { r.mutable_added(); }, "neither sinusoidal nor learned"},
    {"ShortTable",
     [](auto& r) {
       Fill(*r.mutable_added()->mutable_learned(), {2, 4});
     },
     "added.learned: shape is [2, 4], it must be [3 or more, 4]"},
    {"OtherSlopes",
     [](auto& r) { r.mutable_alibi()->add_slopes(1), r.mutable_alibi()->add_slopes(2); },
     "alibi.slopes has 2 values, there are 1 heads"},
    {"TooManyTokens",
     [](auto& r) {
       Fill(*r.mutable_query(), {1, 40000, 1});
     },
     "80000 tokens (queries and keys), the limit is 65536 (--max_attention_tokens)"},
    {"HugeWeights",
     [](auto& r) {
       Fill(*r.mutable_query(), {1, 20000, 1});
       r.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
     },
     "bytes for its answer as f32, the limit is 67108864 (--max_response_bytes)"},
};

// One server for all: it must survive each.
class AttentionBadInputTest : public AttentionTest, public testing::WithParamInterface<BadInput> {
 protected:
  static void TearDownTestSuite() { shared_.reset(); }
  void SetUp() override {
    if (shared_ == nullptr) shared_ = std::make_unique<InProcessServer>();
    server_ = std::move(shared_);
    stub_ = v1::Attention::NewStub(server_->NewChannel());
  }
  void TearDown() override { shared_ = std::move(server_); }

 private:
  static inline std::unique_ptr<InProcessServer> shared_;
};

TEST_P(AttentionBadInputTest, IsRefusedAndTheNextAnswered) {
  server_->AwaitReady();
  v1::AttendRequest request = OnesRequest();
  GetParam().spoil(request);
  v1::AttendResponse response;
  const grpc::Status status = Attend(request, response);
  EXPECT_EQ(status.error_code(), GetParam().code) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(GetParam().message));
  ExpectOnes();
}

INSTANTIATE_TEST_SUITE_P(All, AttentionBadInputTest, testing::ValuesIn(kBadInputs),
                         [](const auto& test) { return std::string(test.param.name); });

// Not an error: it comes out where it would in the formula.
TEST_F(AttentionTest, NotANumberStaysInItsOwnSequence) {
  Start();
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e38f}) {
    v1::AttendRequest request = OnesRequest();
    std::string& data = *request.mutable_query()->mutable_data();
    data.replace(0, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
    v1::AttendResponse response;
    const grpc::Status status = Attend(request, response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const std::vector<float> output = Floats(response.output());
    for (size_t i = 12; i < 24; ++i) EXPECT_NEAR(output[i], 1, 1e-6);
    ExpectOnes();
  }
}

}  // namespace
}  // namespace attendant
