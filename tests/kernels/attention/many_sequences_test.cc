// SPDX-License-Identifier: Apache-2.0
// Batches of very many, very short sequences: what a call costs is what Measure counted.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <numeric>

#include "kernels/attention/check_call.h"
#include "kernels/attention/positions.h"
#include "kernels/attention/registry.h"
#include "tests/kernels/attention/scored/scored_call.h"

namespace attendant::attention {
namespace {

using Shape = TestCall::Shape;

// CPU time, which does not count what other processes take.
double SecondsOf(const Call& call) {
  const std::clock_t start = std::clock();
  const absl::StatusOr<Answer> answer = RunCall(call, 1);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<int64_t> OneTokenEach(int64_t batch) {
  std::vector<int64_t> starts(static_cast<size_t>(batch) + 1);
  std::iota(starts.begin(), starts.end(), 0);
  return starts;
}

class ManySequencesTest : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, ManySequencesTest,
                         testing::Values(Kind::kDotProduct, Kind::kAdditive, Kind::kLuongDot,
                                         Kind::kLuongGeneral, Kind::kLuongConcat, Kind::kFlash,
                                         Kind::kLocal, Kind::kStrided, Kind::kLinear,
                                         Kind::kLinformer),
                         [](const auto& parameter) {
                           return std::string(FindOperator(parameter.param)->name);
                         });

// It would take hours to walk through them.
TEST_P(ManySequencesTest, AnEndlessBatchOfNothingIsDoneAtOnce) {
  ScoredCall test(GetParam(), DType::kF32, Shape{.queries = 1, .keys = 1});
  test.call.mask.window = GetParam() == Kind::kLocal ? 3 : -1;
  for (int64_t keys : {0, 1}) {
    const int64_t batch = int64_t{1} << (keys == 0 ? 48 : 36);
    test.call.queries = Sequences::Dense(batch, 0);
    test.call.keys = Sequences::Dense(batch, keys);
    const absl::StatusOr<Cost> cost = Measure(test.call, 2);
    ASSERT_TRUE(cost.ok()) << cost.status();
    EXPECT_EQ(cost->out_bytes, 0);
    EXPECT_EQ(cost->scratch_bytes, 0);
    ThreadPool pool(2);
    EXPECT_TRUE(attention::Run(test.call, pool, {}, {}).ok());
    EXPECT_TRUE(RunReference(test.call, {}).ok());
  }
}

// The floats of all heads of a sequence would be 2^64, and then none.
TEST_P(ManySequencesTest, EndlessHeadsOfNothingAreMeasuredAtOnce) {
  ScoredCall test(GetParam(), DType::kF32,
                  Shape{.heads = 1, .queries = 1, .keys = 1, .head_dim = 1, .value_dim = 1}, 16);
  test.call.mask.window = GetParam() == Kind::kLocal ? 3 : -1;
  test.call.query.heads = test.call.key.heads = test.call.value.heads = int64_t{1} << 60;
  test.call.queries = test.call.keys = Sequences::Dense(int64_t{1} << 48, 0);
  const absl::StatusOr<Cost> cost = Measure(test.call, 2);
  if (cost.ok()) {
    EXPECT_EQ(cost->scratch_bytes, 0);
  } else {
    EXPECT_EQ(cost.status().code(), absl::StatusCode::kInvalidArgument) << cost.status();
  }
}

TEST_P(ManySequencesTest, QueriesWithoutKeysAreMeasuredAtOnce) {
  ScoredCall test(GetParam(), DType::kF32, Shape{.queries = 1, .keys = 1});
  test.call.mask.window = GetParam() == Kind::kLocal ? 3 : -1;
  test.call.queries = Sequences::Dense(int64_t{1} << 36, 1);
  test.call.keys = Sequences::Dense(int64_t{1} << 36, 0);
  const absl::StatusOr<Cost> cost = Measure(test.call, 2);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(cost->out_bytes, int64_t{1} << 36);
}

// Took 3.2 s while every task added up the sizes of all sequences before its own.
TEST(ManySequencesStridedTest, WeightsOfShortSequencesTakeTimeByTheirNumber) {
  const int64_t batch = 32768;
  TestCall test(Kind::kStrided, DType::kF32, {.heads = 8, .head_dim = 2, .value_dim = 2},
                OneTokenEach(batch), OneTokenEach(batch), 1);
  test.call.need_weights = WeightsWanted::kPerHead;
  EXPECT_LT(SecondsOf(test.call), 2);
}

// Took 19 s while every sequence searched the whole of the projections.
TEST(ManySequencesLinformerTest, WideProjectionsAreSearchedOnce) {
  const int64_t batch = 4096, projected = 512, columns = 8192;
  ScoredCall test(Kind::kLinformer, DType::kF32, {.heads = 1, .head_dim = 1, .value_dim = 1},
                  OneTokenEach(batch), OneTokenEach(batch));
  std::vector<float> projection(static_cast<size_t>(projected * columns));
  projection[0] = 1;  // one slot has a part in the only key; the others are zeros
  test.SetParameter("key_projection", projected, columns, projection);
  test.SetParameter("value_projection", projected, columns, projection);
  EXPECT_LT(SecondsOf(test.call), 4);
}

// Took 3 s while every sequence was cut into as many pieces as the longest.
TEST(ManySequencesPositionsTest, ShortOnesBesideALongOneTakeTimeByTheirTokens) {
  const int64_t batch = 262144, longest = 131072;
  std::vector<int64_t> starts = OneTokenEach(batch);
  starts.push_back(batch + longest);
  std::vector<float> rows(static_cast<size_t>(batch + longest) * 2, 1);
  const PositionedRows operand{
      .sequences = Sequences::Packed(starts),
      .dtype = DType::kF32,
      .rows = OutputRows::TokensFirst(reinterpret_cast<std::byte*>(rows.data()), 1, 2)};
  ThreadPool pool(1);
  const std::clock_t start = std::clock();
  EXPECT_TRUE(Rotate({}, operand, pool).ok());
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1);
  EXPECT_EQ(rows[2 * (batch - 1)], 1);  // position 0
  EXPECT_NEAR(rows[2 * (batch + 1)], std::cos(1) - std::sin(1), 1e-6);
}

// A sum over tokens of all sequences would be 2^64 here.
TEST(ManySequencesLocalTest, OperationsAreThoseOfEachSequence) {
  const int64_t half = int64_t{1} << 32;
  const int64_t queries[] = {0, half, half + 1}, keys[] = {0, 1, half + 1};
  TestCall test(Kind::kLocal, DType::kF32, {.heads = 1, .head_dim = 1, .value_dim = 1}, {0, 1},
                {0, 1}, 1);
  test.call.queries = Sequences::Packed(queries);
  test.call.keys = Sequences::Packed(keys);
  test.call.mask.window = half / 4;
  const absl::StatusOr<Cost> cost = Measure(test.call, 1);
  ASSERT_TRUE(cost.ok()) << cost.status();
  const int64_t seen = (half / 4 + 1) + (half / 2 + 1);
  EXPECT_EQ(SeenPairs(test.call), seen);
  EXPECT_GE(cost->operations, (2 + kSoftmaxOperations) * seen);
}

}  // namespace
}  // namespace attendant::attention
