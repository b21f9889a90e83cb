// SPDX-License-Identifier: Apache-2.0
// Additive, Luong, linear and Linformer attention: the fast way against the reference, and what
// must hold of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/attention/registry.h"
#include "kernels/attention/values.h"
#include "tests/kernels/attention/scored/scored_call.h"
#include "tests/support/counter_values.h"

namespace attendant::attention {
namespace {

using Shape = TestCall::Shape;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

class FamilyTest : public testing::TestWithParam<Kind> {
 protected:
  Kind kind() const { return GetParam(); }
  bool takes_tensor_masks() const { return kind() != Kind::kLinear && kind() != Kind::kLinformer; }
  bool takes_causal() const { return kind() != Kind::kLinformer; }
};

INSTANTIATE_TEST_SUITE_P(Kinds, FamilyTest, testing::ValuesIn(kScoredKinds),
                         [](const auto& parameter) {
                           return std::string(FindOperator(parameter.param)->name);
                         });

// All but Linformer, whose projections know where a key stands.
class KeyOrderTest : public FamilyTest {};

INSTANTIATE_TEST_SUITE_P(Kinds, KeyOrderTest,
                         testing::Values(Kind::kAdditive, Kind::kLuongDot, Kind::kLuongGeneral,
                                         Kind::kLuongConcat, Kind::kLinear),
                         [](const auto& parameter) {
                           return std::string(FindOperator(parameter.param)->name);
                         });

Answer Expect(const absl::StatusOr<Answer>& answer) {
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(Answer{});
}

// Fast way and reference, with and without the weights, one and three threads.
void ExpectParity(Call call) {
  const double tolerance = call.dtype == DType::kF32 ? 1e-5 : 1e-2;
  Answer expected;
  for (WeightsWanted wanted :
       {WeightsWanted::kPerHead, WeightsWanted::kAveraged, WeightsWanted::kNone}) {
    SCOPED_TRACE(testing::Message() << "weights " << static_cast<int>(wanted));
    call.need_weights = wanted;
    if (wanted == WeightsWanted::kNone) {
      expected.weights.clear();
    } else {
      expected = Expect(RunCallByReference(call));
    }
    const Answer answer = Expect(RunCall(call, 1));
    EXPECT_LE(LargestDifference(answer.out, expected.out), tolerance);
    EXPECT_LE(LargestDifference(answer.weights, expected.weights), 1e-5);
    const Answer parallel = Expect(RunCall(call, 3));
    EXPECT_EQ(parallel.out, answer.out);
    EXPECT_EQ(parallel.weights, answer.weights);
  }
}

TEST_P(FamilyTest, MatchesTheReferenceInEveryShape) {
  const Shape shapes[] = {
      {.batch = 1, .heads = 1, .queries = 1, .keys = 1, .head_dim = 1, .value_dim = 1},
      {.batch = 2, .heads = 3, .queries = 19, .keys = 27, .head_dim = 16, .value_dim = 16},
      {.batch = 1, .heads = 2, .queries = 13, .keys = 65, .head_dim = 33, .value_dim = 70},
      {.batch = 1, .heads = 1, .queries = 70, .keys = 3, .head_dim = 64, .value_dim = 5},
      {.batch = 1, .heads = 1, .queries = 30, .keys = 1030, .head_dim = 8, .value_dim = 17},
  };
  for (const Shape& shape : shapes) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      SCOPED_TRACE(testing::Message() << shape.queries << " x " << shape.keys << " x "
                                      << shape.head_dim << ", " << DTypeName(dtype));
      ExpectParity(ScoredCall(kind(), dtype, shape).call);
    }
  }
}

TEST_P(FamilyTest, MatchesTheReferenceOnPackedSequences) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    // Also empty ones: no query, no key.
    ExpectParity(
        ScoredCall(kind(), dtype, {.heads = 2}, {0, 5, 5, 18, 20, 60}, {0, 9, 14, 14, 15, 600})
            .call);
  }
}

TEST_P(FamilyTest, MatchesTheReferenceUnderEveryMask) {
  const Shape shape{.batch = 2, .heads = 3, .queries = 78, .keys = 83};
  ScoredCall test(kind(), DType::kF32, shape);
  std::vector<uint8_t> keys(static_cast<size_t>(shape.batch * shape.keys), 1);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i % 5 != 2 && i < 140;
  Call call = test.call;
  call.mask.keys = {keys.data(), {shape.batch * shape.keys}};
  ExpectParity(call);
  if (takes_causal()) {
    call.mask.causal = true;
    ExpectParity(call);
    call.mask.keys = {};
    ExpectParity(call);
  }
  if (!takes_tensor_masks()) return;
  call.mask.window = 7;
  ExpectParity(call);
  call = test.call;
  const int64_t dims = 3 * shape.queries * shape.keys;
  std::vector<float> added = CounterValues(5, dims, 3);
  for (size_t i = 0; i < added.size(); ++i) {
    if (added[i] > 2) added[i] = -kInf;
  }
  call.mask.tensor = {MaskTensor::Type::kF32, added.data(), {1, 3, shape.queries, shape.keys}};
  ExpectParity(call);
  const std::vector<float> slopes = {0.5f, 0.25f, 0.01f};
  call.mask.alibi_slopes = slopes;
  ExpectParity(call);
}

TEST_P(FamilyTest, GivesZerosWhereNoKeyIsLeft) {
  const Shape shape{.batch = 2, .heads = 2, .queries = 5, .keys = 70};
  ScoredCall test(kind(), DType::kF32, shape);
  std::vector<uint8_t> keys(140, 0);
  std::fill(keys.begin() + 70, keys.end(), 1);
  Call call = test.call;
  call.mask.keys = {keys.data(), {140}};
  call.need_weights = WeightsWanted::kPerHead;
  for (const Answer& answer : {Expect(RunCall(call)), Expect(RunCallByReference(call))}) {
    const auto out_half = static_cast<int64_t>(answer.out.size()) / 2;
    const auto weights_half = static_cast<int64_t>(answer.weights.size()) / 2;
    const auto is_zero = [](float value) { return value == 0; };
    EXPECT_TRUE(std::all_of(answer.out.begin(), answer.out.begin() + out_half, is_zero));
    EXPECT_TRUE(
        std::all_of(answer.weights.begin(), answer.weights.begin() + weights_half, is_zero));
    EXPECT_TRUE(std::none_of(answer.out.begin() + out_half, answer.out.end(), is_zero));
  }
}

TEST_P(FamilyTest, RowsOfWeightsSumToOne) {
  ScoredCall test(kind(), DType::kF32, {.queries = 30, .keys = 90});
  test.call.need_weights = WeightsWanted::kPerHead;
  const Answer answer = Expect(RunCall(test.call));
  const int64_t row = kind() == Kind::kLinformer ? 11 : 90;
  ASSERT_EQ(answer.weights.size(), static_cast<size_t>(2 * 3 * 30 * row));
  for (auto begin = answer.weights.begin(); begin != answer.weights.end(); begin += row) {
    EXPECT_NEAR(std::accumulate(begin, begin + row, 0.0), 1, 1e-6);
  }
}

TEST_P(KeyOrderTest, PermutingKeysWithValuesChangesNothing) {
  const int64_t keys = 90, dim = 16;
  ScoredCall test(kind(), DType::kF32, {.batch = 1, .heads = 1, .queries = 30, .keys = keys});
  const Answer before = Expect(RunCall(test.call));
  for (std::vector<std::byte>* operand : {&test.key, &test.value}) {
    const std::vector<std::byte> old = *operand;
    const int64_t bytes = dim * 4;
    for (int64_t key = 0; key < keys; ++key) {
      std::memcpy(operand->data() + key * bytes, old.data() + key * 7 % keys * bytes,
                  static_cast<size_t>(bytes));
    }
  }
  const Answer after = Expect(RunCall(test.call));
  EXPECT_LE(LargestDifference(before.out, after.out), 2e-6);
  EXPECT_NE(before.out, after.out);  // the order of sums did change: the keys were permuted
}

TEST_P(KeyOrderTest, CausalIgnoresWhatFollows) {
  const int64_t len = 600, dim = 16;
  ScoredCall test(kind(), DType::kF32, {.batch = 1, .heads = 1, .queries = len, .keys = len});
  test.call.mask.causal = true;
  const Answer before = Expect(RunCall(test.call));
  // From key 500 on all is noise, and some of it is not even a number.
  for (std::vector<std::byte>* operand : {&test.key, &test.value}) {
    auto* values = reinterpret_cast<float*>(operand->data());
    for (int64_t i = 500 * dim; i < len * dim; ++i) values[i] = i % 3 == 0 ? kInf : -3.0f;
    values[500 * dim] = std::numeric_limits<float>::quiet_NaN();
  }
  const Answer after = Expect(RunCall(test.call));
  const auto same = [&](int64_t row) {
    return std::equal(before.out.begin() + row * dim, before.out.begin() + (row + 1) * dim,
                      after.out.begin() + row * dim);
  };
  for (int64_t row = 0; row < 500; ++row) EXPECT_TRUE(same(row)) << row;
  EXPECT_FALSE(same(500));
}

TEST_P(FamilyTest, MaskedKeysMayHoldAnything) {
  const int64_t dim = 16;
  ScoredCall test(kind(), DType::kF32, {.batch = 1, .heads = 1, .queries = 20, .keys = 40});
  std::vector<uint8_t> keys(40, 1);
  keys[3] = keys[39] = 0;
  test.call.mask.keys = {keys.data(), {40}};
  const Answer before = Expect(RunCall(test.call));
  for (std::vector<std::byte>* operand : {&test.key, &test.value}) {
    auto* values = reinterpret_cast<float*>(operand->data());
    std::fill_n(values + 3 * dim, dim, kInf);
    std::fill_n(values + 39 * dim, dim, std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_EQ(Expect(RunCall(test.call)).out, before.out);
}

TEST_P(FamilyTest, NotANumberStaysSo) {
  ScoredCall test(kind(), DType::kF32, {.batch = 1, .heads = 1, .queries = 3, .keys = 4});
  reinterpret_cast<float*>(test.query.data())[16] = std::numeric_limits<float>::quiet_NaN();
  const Answer answer = Expect(RunCall(test.call));
  EXPECT_FALSE(std::isnan(answer.out[0]));
  EXPECT_TRUE(std::isnan(answer.out[16]));
  EXPECT_FALSE(std::isnan(answer.out[32]));
}

TEST_P(FamilyTest, LargeOperandsStayFinite) {
  const Shape shape{.batch = 1, .heads = 2, .queries = 21, .keys = 80, .amplitude = 1e4f};
  ScoredCall test(kind(), DType::kF32, shape);
  test.call.need_weights = WeightsWanted::kPerHead;
  const Answer answer = Expect(RunCall(test.call));
  for (float value : answer.out) EXPECT_TRUE(std::isfinite(value));
  for (float value : answer.weights) EXPECT_TRUE(value >= 0 && value <= 1.000001f) << value;
  // Scores of 1e8 have no digits left below 1 in float: only where they are small is there a
  // reference.
  if (kind() == Kind::kAdditive || kind() == Kind::kLuongConcat || kind() == Kind::kLinear) {
    ExpectParity(test.call);
  }
}

TEST_P(FamilyTest, BatchedEqualsAloneInEveryBit) {
  ScoredCall test(kind(), DType::kBf16, {.heads = 2}, {0, 40, 47, 900}, {0, 33, 40, 1000});
  const Answer together = Expect(RunCall(test.call));
  const std::vector<int64_t> queries = {0, 853}, keys = {0, 960};
  Call alone = test.call;
  alone.queries = Sequences::Packed(queries);
  alone.keys = Sequences::Packed(keys);
  alone.query.values += 47 * 2 * 16 * 2;
  alone.key.values += 40 * 2 * 16 * 2;
  alone.value.values += 40 * 2 * 16 * 2;
  const Answer answer = Expect(RunCall(alone));
  ASSERT_EQ(answer.out.size(), static_cast<size_t>(853 * 2 * 16));
  EXPECT_TRUE(std::equal(answer.out.begin(), answer.out.end(),
                         together.out.end() - static_cast<int64_t>(answer.out.size())));
}

TEST_P(FamilyTest, ScratchDoesNotGrowWithTheBatch) {
  ScoredCall test(kind(), DType::kF32, {.batch = 1});
  Call few = test.call, many = test.call;
  few.queries = Sequences::Dense(10000, 19);
  few.keys = Sequences::Dense(10000, 27);
  many.queries = Sequences::Dense(100000, 19);
  many.keys = Sequences::Dense(100000, 27);
  const absl::StatusOr<Cost> small = Measure(few, 2), large = Measure(many, 2);
  ASSERT_TRUE(small.ok() && large.ok()) << small.status() << large.status();
  EXPECT_EQ(small->scratch_bytes, large->scratch_bytes);
  EXPECT_EQ(large->operations, 10 * small->operations);
}

void ExpectRefused(const Call& call, absl::StatusCode code, const char* words) {
  const absl::Status status = Measure(call, 1).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(status.message(), HasSubstr(words));
}

TEST(FamilyRefusalTest, NamesWhatDisagrees) {
  ScoredCall additive(Kind::kAdditive, DType::kF32, {});
  additive.SetParameter("key_weight", kUnits, 9, std::vector<float>(kUnits * 9));
  ExpectRefused(additive.call, absl::StatusCode::kInvalidArgument,
                "'key_weight' is [37, 9], expected [37, 16]");
  ScoredCall general(Kind::kLuongGeneral, DType::kF32, {});
  general.call.parameters = {};
  ExpectRefused(general.call, absl::StatusCode::kInvalidArgument, "'weight' is missing");
  ScoredCall dot(Kind::kLuongDot, DType::kF32, {});
  dot.call.key.dim = 8;
  ExpectRefused(dot.call, absl::StatusCode::kInvalidArgument, "query has 16 dims, key has 8");
  ScoredCall linformer(Kind::kLinformer, DType::kF32, {});
  linformer.call.keys = Sequences::Dense(2, 28);
  ExpectRefused(linformer.call, absl::StatusCode::kInvalidArgument,
                "is [11, 27], the longest sequence has 28 keys");
}

TEST(FamilyRefusalTest, SaysWhatAKindCannotDo) {
  ScoredCall linear(Kind::kLinear, DType::kF32, {});
  linear.call.mask.window = 3;
  ExpectRefused(linear.call, absl::StatusCode::kUnimplemented, "no mask tensor, window or ALiBi");
  ScoredCall linformer(Kind::kLinformer, DType::kF32, {});
  linformer.call.mask.causal = true;
  ExpectRefused(linformer.call, absl::StatusCode::kUnimplemented, "not causal");
  ScoredCall additive(Kind::kAdditive, DType::kF32, {});
  additive.call.scale = 0.5f;
  ExpectRefused(additive.call, absl::StatusCode::kInvalidArgument, "has none");
  ScoredCall map(Kind::kLinear, DType::kF32, {});
  map.call.feature_map = static_cast<FeatureMap>(9);
  ExpectRefused(map.call, absl::StatusCode::kInvalidArgument, "no feature map 9");
}

TEST(FamilyRefusalTest, RefusesSizesThatOverflow) {
  for (Kind kind : kScoredKinds) {
    ScoredCall test(kind, DType::kF32, {});
    test.call.query.dim = test.call.key.dim = int64_t{1} << 60;
    ExpectRefused(test.call, absl::StatusCode::kInvalidArgument, "beyond the limit");
  }
  ScoredCall additive(Kind::kAdditive, DType::kF32, {});
  const int64_t units = int64_t{1} << 43;
  const auto huge = [](const char* name, int64_t rows, int64_t columns) {
    return Parameter{name, {nullptr, {rows, columns}}};
  };
  const Parameter parameters[] = {huge("query_weight", units, 16), huge("key_weight", units, 16),
                                  huge("score_weight", 1, units)};
  additive.call.parameters = parameters;
  ExpectRefused(additive.call, absl::StatusCode::kInvalidArgument, "beyond the limit");
}

TEST(LinearTest, EqualsItsQuadraticForm) {
  for (FeatureMap map : {FeatureMap::kEluPlusOne, FeatureMap::kRelu}) {
    for (bool causal : {false, true}) {
      ScoredCall test(Kind::kLinear, DType::kF32, {.queries = 1300, .keys = 1100});
      test.call.feature_map = map;
      test.call.mask.causal = causal;
      const Answer sums = Expect(RunCall(test.call));
      test.call.need_weights = WeightsWanted::kPerHead;
      EXPECT_LE(LargestDifference(sums.out, Expect(RunCall(test.call)).out), 1e-5);
    }
  }
}

TEST(LinformerTest, IdentityProjectionsGiveFullAttention) {
  const int64_t keys = 77;
  std::vector<float> identity(static_cast<size_t>(keys * keys));
  for (size_t i = 0; i < identity.size(); i += static_cast<size_t>(keys) + 1) identity[i] = 1;
  std::vector<uint8_t> mask(110, 1);
  mask[2] = mask[60] = mask[109] = 0;
  for (const bool masked : {false, true}) {
    ScoredCall test(Kind::kLinformer, DType::kF32, {.heads = 2}, {0, 40, 47, 90}, {0, 33, 33, 110},
                    keys);
    test.SetParameter("key_projection", keys, keys, identity);
    test.SetParameter("value_projection", keys, keys, identity);
    if (masked) test.call.mask.keys = {mask.data(), {110}};
    const Answer projected = Expect(RunCall(test.call));
    const Answer by_reference = Expect(RunCallByReference(test.call));
    test.call.kind = Kind::kDotProduct;
    test.call.parameters = {};
    const Answer full = Expect(RunCallByReference(test.call));
    EXPECT_LE(LargestDifference(projected.out, full.out), 1e-6);
    EXPECT_LE(LargestDifference(by_reference.out, full.out), 1e-6);
  }
}

// A projected key counts when its value alone has a part in a key that the mask leaves in.
TEST(LinformerTest, AValueOfAnAttendedKeyIsEnoughToCount) {
  ScoredCall test(Kind::kLinformer, DType::kF32,
                  {.batch = 1, .heads = 1, .queries = 1, .keys = 4, .head_dim = 1, .value_dim = 1},
                  2);
  test.SetParameter("key_projection", 2, 4, {1, 0, 0, 0, 0, 0, 1, 0});
  test.SetParameter("value_projection", 2, 4, {0, 1, 0, 0, 0, 0, 1, 0});
  const float query = 0, values[] = {1, 2, 6, 8};
  std::memcpy(test.query.data(), &query, sizeof(query));
  std::memcpy(test.value.data(), values, sizeof(values));
  const std::vector<uint8_t> mask = {0, 1, 1, 1};
  test.call.mask.keys = {mask.data(), {4}};
  EXPECT_EQ(Expect(RunCall(test.call)).out, std::vector<float>{4}) << "the mean of 2 and 6";
}

// The way by products of exponentials ends where a projected key is beyond 21.5: both sides of it,
// in one call, and queries up to where their exponential would overflow.
TEST(AdditiveTest, BothWaysToTanhAgreeWithTheReference) {
  ScoredCall test(Kind::kAdditive, DType::kF32,
                  {.batch = 1, .heads = 1, .queries = 40, .keys = 200, .head_dim = 1});
  std::vector<float> ones(kUnits, 1), sevenths(kUnits, 1.0f / kUnits), shifts(kUnits);
  for (size_t u = 0; u < shifts.size(); ++u) shifts[u] = static_cast<float>(u) * 0.07f;
  test.SetParameter("query_weight", kUnits, 1, ones);
  test.SetParameter("key_weight", kUnits, 1, ones);
  test.SetParameter("score_weight", 1, kUnits, sevenths);
  test.SetParameter("bias", 1, kUnits, shifts);
  auto* queries = reinterpret_cast<float*>(test.query.data());
  auto* keys = reinterpret_cast<float*>(test.key.data());
  for (int i = 0; i < 40; ++i) queries[i] = static_cast<float>(i - 20) * 3.1f;
  for (int i = 0; i < 200; ++i) {
    keys[i] = static_cast<float>(i % 64 - 32) * (i < 128 ? 0.67f : 1.4f);  // blocks up to 21.4; 44
  }
  keys[199] = 1000;
  ExpectParity(test.call);
}

}  // namespace
}  // namespace attendant::attention
