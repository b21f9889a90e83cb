// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/check_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kernels/attention/registry.h"
#include "tests/kernels/attention/call_support.h"

namespace attendant::attention {
namespace {

using testing::HasSubstr;

// Two sequences of 5 queries over 7 keys, 3 heads, without values: Measure reads none.
Call DenseCall() {
  return {.queries = Sequences::Dense(2, 5),
          .keys = Sequences::Dense(2, 7),
          .query = InputRows::HeadsFirst(nullptr, 3, 8, 5),
          .key = InputRows::HeadsFirst(nullptr, 3, 8, 7),
          .value = InputRows::HeadsFirst(nullptr, 3, 4, 7),
          .isa = BestIsa()};
}

void ExpectRefused(const Call& call, absl::StatusCode code, const char* words) {
  const absl::StatusOr<Cost> cost = Measure(call, 1);
  EXPECT_EQ(cost.status().code(), code) << cost.status();
  EXPECT_THAT(cost.status().message(), HasSubstr(words));
}

TEST(CheckCallTest, ComputesWhatTheOutputsTake) {
  Call call = DenseCall();
  call.need_weights = WeightsWanted::kPerHead;
  absl::StatusOr<Cost> cost = Measure(call, 1);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->out_bytes, 2 * 3 * 5 * 4 * 4);
  EXPECT_EQ(cost->weights_bytes, 2 * 3 * 5 * 7 * 4);
  EXPECT_GE(cost->operations, 2 * 3 * 5 * 7 * (2 * (8 + kSoftmaxOperations) + 4));
  call.need_weights = WeightsWanted::kAveraged;
  call.dtype = DType::kBf16;
  cost = Measure(call, 1);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->out_bytes, 2 * 3 * 5 * 4 * 2);
  EXPECT_EQ(cost->weights_bytes, 2 * 5 * 7 * 4);
}

TEST(CheckedProductTest, TheLimitItselfIsTheLargestProduct) {
  for (const int64_t factor : {int64_t{1}, int64_t{2}, int64_t{1} << 20}) {
    EXPECT_EQ(*CheckedProduct("all", {kMaxElements / factor, factor}), kMaxElements);
    EXPECT_FALSE(CheckedProduct("all", {kMaxElements / factor + 1, factor}).ok()) << factor;
  }
}

TEST(CheckCallTest, AKeyMaskHasAValueForEachKey) {
  for (const int64_t values : {0, 13, 14, 15}) {
    Call call = DenseCall();
    call.mask.keys = TensorView<const uint8_t, 1>(nullptr, {values});
    EXPECT_EQ(Measure(call, 1).ok(), values == 0 || values == 14) << values;
  }
}

TEST(CheckCallTest, NamesBothOfWhatDisagrees) {
  Call call = DenseCall();
  call.key.dim = 9;
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "query has 8 dims, key has 9");
  call = DenseCall();
  call.value.heads = 2;
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "key has 3 heads, value has 2");
  call = DenseCall();
  call.keys = Sequences::Dense(3, 7);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "query has 2 sequences, key has 3");
  call = DenseCall();
  call.mask.tensor.dims = {1, 2, 5, 7};
  ExpectRefused(call, absl::StatusCode::kInvalidArgument,
                "the mask is [1, 2, 5, 7], which does not broadcast to the scores' [batch, heads, "
                "queries, keys] = [2, 3, 5, 7]");
  call = DenseCall();
  call.mask.keys = TensorView<const uint8_t, 1>(nullptr, {7});
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "7 values for the keys' 14 tokens");
  call = DenseCall();
  const float slopes[] = {0.5f, 0.25f};
  call.mask.alibi_slopes = slopes;
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "ALiBi has 2 slopes for 3 heads");
}

TEST(CheckCallTest, RefusesWhatNoCallMaySay) {
  Call call = DenseCall();
  call.dtype = DType::kInt8;
  ExpectRefused(call, absl::StatusCode::kUnimplemented, "not in int8");
  call = DenseCall();
  call.scale = std::numeric_limits<float>::quiet_NaN();
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "must be finite");
  for (const float slope :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    call = DenseCall();
    const float slopes[] = {0.5f, 0.25f, slope};
    call.mask.alibi_slopes = slopes;
    ExpectRefused(call, absl::StatusCode::kInvalidArgument, "it must be finite");
  }
  call = DenseCall();
  call.mask.window = -2;
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "window is -2");
  call = DenseCall();
  call.query.heads = 0;
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "query has 0 heads");
  call = DenseCall();
  call.kind = static_cast<Kind>(200);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "kind 200");
}

TEST(CheckCallTest, RefusesStartsThatAreNone) {
  Call call = DenseCall();
  call.queries = Sequences::Packed({});
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "queries have -1 sequences");
  const int64_t only[] = {0}, late[] = {1, 5, 9}, falling[] = {0, 5, 4};
  call.queries = Sequences::Packed(only);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "queries have 0 sequences");
  call.queries = Sequences::Packed(late);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "begin with 1");
  call.queries = Sequences::Packed(falling);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "start 2 is 4 after 5");
}

TEST(CheckCallTest, RefusesSizesThatOverflow) {
  const int64_t huge = int64_t{1} << 40;
  Call call = DenseCall();
  call.queries = Sequences::Dense(2, huge);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "beyond the limit");
  call = DenseCall();
  call.query.dim = call.key.dim = std::numeric_limits<int64_t>::max();
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "beyond the limit");
  call = DenseCall();
  call.queries = Sequences::Dense(2, int64_t{1} << 22);
  call.keys = Sequences::Dense(2, int64_t{1} << 22);
  call.need_weights = WeightsWanted::kPerHead;
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "beyond the limit");
}

}  // namespace
}  // namespace attendant::attention
