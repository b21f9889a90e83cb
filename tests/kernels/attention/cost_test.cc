// SPDX-License-Identifier: Apache-2.0
// How the operations that Measure declares grow. Whether they take the time that they stand for is
// measured by operation_bench of tests/bench.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/attention/registry.h"
#include "tests/kernels/attention/scored/scored_call.h"

namespace attendant::attention {
namespace {

using Shape = TestCall::Shape;

constexpr Kind kKinds[] = {
    Kind::kDotProduct, Kind::kFlash,        Kind::kLocal,       Kind::kStrided, Kind::kAdditive,
    Kind::kLuongDot,   Kind::kLuongGeneral, Kind::kLuongConcat, Kind::kLinear,  Kind::kLinformer};

// Of `len` queries and keys in each sequence.
struct LengthCall : ScoredCall {
  LengthCall(Kind kind, int64_t batch, int64_t len)
      : ScoredCall(kind, DType::kF32,
                   Shape{.batch = batch, .heads = 2, .queries = len, .keys = len},
                   /*projected=*/8) {
    call.block = 4;
    if (kind == Kind::kLocal) call.mask.window = 16;
  }
};

class OperationsTest : public testing::TestWithParam<Kind> {
 protected:
  static int64_t Operations(const Call& call) {
    const absl::StatusOr<Cost> cost = Measure(call, 1);
    EXPECT_TRUE(cost.ok()) << cost.status();
    return cost.ok() ? cost->operations : 0;
  }

  static double Growth(int64_t from, int64_t to) {
    const LengthCall shorter(GetParam(), 1, from), longer(GetParam(), 1, to);
    return static_cast<double>(Operations(longer.call)) /
           static_cast<double>(Operations(shorter.call));
  }

  // Whether every query is scored with every key.
  static bool Quadratic() {
    return GetParam() != Kind::kLocal && GetParam() != Kind::kStrided &&
           GetParam() != Kind::kLinear && GetParam() != Kind::kLinformer;
  }
};

TEST_P(OperationsTest, ABatchTakesWhatItsSequencesTake) {
  const LengthCall one(GetParam(), 1, 40), five(GetParam(), 5, 40);
  EXPECT_EQ(Operations(five.call), 5 * Operations(one.call));
}

TEST_P(OperationsTest, ScoresOfAllPairsGrowWithTheSquareOfTheLength) {
  const double growth = Growth(2048, 4096);
  EXPECT_GT(growth, Quadratic() ? 3.5 : 1.8);
  EXPECT_LT(growth, Quadratic() ? 4.01 : GetParam() == Kind::kStrided ? 4.01 : 2.2);
}

TEST_P(OperationsTest, WeightsAndMasksOfKeysTakeNoLess) {
  LengthCall made(GetParam(), 2, 64);
  const int64_t plain = Operations(made.call);
  made.call.need_weights = WeightsWanted::kPerHead;
  if (Measure(made.call, 1).ok()) {
    EXPECT_GE(Operations(made.call), plain);
  }
  made.call.need_weights = WeightsWanted::kNone;
  const std::vector<uint8_t> mask(128, 1);
  made.call.mask.keys = {mask.data(), {128}};
  EXPECT_GE(Operations(made.call), plain);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OperationsTest, testing::ValuesIn(kKinds));

class ExactOperationsTest : public testing::Test {
 protected:
  static constexpr int64_t kLen = 512;

  ExactOperationsTest()
      : made_(Kind::kDotProduct, DType::kF32,
              Shape{.batch = 1, .heads = 2, .queries = kLen, .keys = kLen}, /*seed=*/1),
        plain_(Operations()) {}

  int64_t Operations() const { return Measure(made_.call, 1)->operations; }

  Mask& mask() { return made_.call.mask; }

  TestCall made_;
  const int64_t plain_;
};

TEST_F(ExactOperationsTest, EachPairIsAMultiplyAddOfEachDimAndASoftmax) {
  EXPECT_GE(plain_, 2 * kLen * kLen * (16 + 16 + kSoftmaxOperations));
  EXPECT_LE(plain_, 2 * kLen * (kLen * (16 + 16 + kSoftmaxOperations) + 2048));
}

TEST_F(ExactOperationsTest, HiddenPairsTakeLess) {
  mask().causal = true;
  EXPECT_LT(Operations(), 0.6 * static_cast<double>(plain_));
  mask() = {};
  mask().window = 8;
  EXPECT_LT(Operations(), 0.2 * static_cast<double>(plain_));
}

TEST_F(ExactOperationsTest, WeightsScoreEachPairOnceMore) {
  made_.call.need_weights = WeightsWanted::kPerHead;
  EXPECT_GE(Operations() - plain_, 2 * kLen * kLen * (16 + kSoftmaxOperations));
}

// The mask's values are read for each pair; those of alibi and a tensor of rows also put together.
TEST_F(ExactOperationsTest, EachFormOfMaskTakesMore) {
  const std::vector<uint8_t> bytes(kLen * kLen, 1);
  const auto more = [&] { return static_cast<double>(Operations() - plain_) / (2 * kLen * kLen); };
  mask().keys = {bytes.data(), {kLen}};
  EXPECT_GE(more(), 12);
  mask() = {};
  mask().tensor = {
      .type = MaskTensor::Type::kBool, .values = bytes.data(), .dims = {1, 1, kLen, kLen}};
  EXPECT_GE(more(), 48);
  const std::vector<float> slopes(2, 0.25f);
  mask() = {};
  mask().alibi_slopes = slopes;
  EXPECT_GE(more(), 12);
}

}  // namespace
}  // namespace attendant::attention
