// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "kernels/cuda/kernels/attention_tile.h"
#include "tests/kernels/cuda/kernels/attention_problem.h"

namespace attendant::cuda {
namespace {

using testing::Each;
using testing::FloatNear;

template <int kHeadDim>
void ExpectLayout() {
  using Layout = Tile<kHeadDim>;
  std::set<uint32_t> places;
  for (int row = 0; row < Layout::kRows; ++row) {
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      const uint32_t offset = Layout::Offset(row, chunk);
      EXPECT_EQ(offset % 16, 0u);
      EXPECT_LT(offset, static_cast<uint32_t>(Layout::kBytes));
      EXPECT_TRUE(places.insert(offset).second);
      // As matmuls of a group find it: bits of the address change by the bits three above them.
      const uint32_t dense = Layout::PanelOffset(kChunkNumbers * chunk) +
                             static_cast<uint32_t>(row * Layout::kPanelRowBytes);
      EXPECT_EQ(offset, dense ^ (dense >> 3 & (Layout::kPanelRowBytes - 16u)));
    }
  }
  EXPECT_EQ(places.size() * 16, static_cast<size_t>(Layout::kBytes));
  EXPECT_EQ(SharedTiles<kHeadDim>::kQueries % 1024, 0u);
  for (int stage : {0, 1}) {
    EXPECT_EQ(SharedTiles<kHeadDim>::Keys(stage) % 1024, 0u);
    EXPECT_EQ(SharedTiles<kHeadDim>::Values(stage) % 1024, 0u);
  }
  for (int row = 0; row < Layout::kRows; row += 8) {
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      std::set<uint32_t> banks;
      for (int i = 0; i < 8; ++i) banks.insert(Layout::Offset(row + i, chunk) / 16 % 8);
      EXPECT_EQ(banks.size(), 8u);
    }
  }
}

TEST(AttentionTileTest, EveryChunkHasItsPlaceAndEightRowsTheirBanks) {
  ExpectLayout<32>();
  ExpectLayout<64>();
  ExpectLayout<128>();
  ExpectLayout<256>();
}

class AttentionKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  // The shape with the test's format, or a smaller head_dim where it lacks that.
  static void Expect(AttentionShape shape, double tolerance = 2) {
    shape.dtype = GetParam();
    AttentionProblem problem(shape);
    ExpectAttention(problem, tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, AttentionKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

TEST_P(AttentionKernelTest, EveryLengthAndHeadDim) {
  for (int64_t head_dim : {32, 64, 128, 256}) {
    for (int64_t len : {1, 2, 15, 16, 17, 63, 64, 65, 128, 129, 200}) {
      Expect({.heads = 1, .head_dim = head_dim, .queries = {len}});
    }
  }
}

TEST_P(AttentionKernelTest, HeadDimsThatAreFilledUp) {
  for (int64_t head_dim : {8, 16, 24, 40, 80, 96, 120, 136, 192}) {
    Expect({.heads = 3, .head_dim = head_dim, .queries = {70, 3}});
  }
}

TEST_P(AttentionKernelTest, ManySequences) {
  Expect({.heads = 3, .head_dim = 32, .queries = {5, 1, 64, 17, 130, 1, 16, 33, 0, 65, 48, 2}});
  Expect({.heads = 12, .head_dim = 64, .queries = {9, 70, 31}});
}

TEST_P(AttentionKernelTest, Windows) {
  const std::vector<AttentionRule> rules = {
      {kAllKeys, 0}, {0, kAllKeys}, {0, 0},   {3, 3},   {70, 5}, {5, 70},
      {100, 0},      {0, 64},       {63, 63}, {64, 64}, {1, 0},  {INT32_MAX - 1, 7}};
  for (const AttentionRule& rule : rules) {
    Expect({.heads = 1, .head_dim = 32, .queries = {200, 65, 1, 16}, .rule = rule});
  }
}

TEST_P(AttentionKernelTest, QueriesThatAreNotTheKeys) {
  const std::vector<AttentionRule> rules = {{}, {kAllKeys, 0}, {4, 4}, {0, 20}};
  for (const AttentionRule& rule : rules) {
    // With windows, the queries behind the last key see none.
    Expect(
        {.heads = 2, .head_dim = 32, .queries = {20, 150, 5}, .keys = {130, 9, 64}, .rule = rule});
  }
}

TEST_P(AttentionKernelTest, Masks) {
  for (const bool bias : {false, true}) {
    for (const bool allowed : {false, true}) {
      for (const bool one_row : {false, true}) {
        if (!bias && !allowed) continue;
        for (const AttentionRule& rule : {AttentionRule{}, AttentionRule{kAllKeys, 0}}) {
          // The first queries of a causal mask see few keys, often none that is allowed.
          AttentionShape shape = {.heads = 2, .head_dim = 32, .queries = {131}, .rule = rule};
          shape.bias = bias;
          shape.allowed = allowed;
          shape.one_mask_row = one_row;
          Expect(shape);
          shape.queries = {67};
          shape.keys = {3};  // most rows have no key at all
          Expect(shape);
          if (!one_row) continue;
          shape.queries = {3, 20, 1, 70};
          shape.keys = {};
          Expect(shape);
        }
      }
    }
  }
}

TEST_P(AttentionKernelTest, HeadsThatShareKeys) {
  for (const int64_t heads_per_key : {2, 3, 6}) {
    Expect({.heads = 6,
            .head_dim = 32,
            .queries = {70, 5},
            .rule = {kAllKeys, 0},
            .heads_per_key = heads_per_key});
  }
}

TEST_P(AttentionKernelTest, Distances) {
  const std::vector<AttentionRule> rules = {{}, {9, 9}, {70, 70}, {9, 0}, {kAllKeys, 0}};
  for (const AttentionRule& rule : rules) {
    for (const bool gaps : {false, true}) {
      for (const bool scores : {false, true}) {
        Expect({.heads = 2,
                .head_dim = 32,
                .queries = {131, 200, 17},
                .rule = rule,
                .distances = true,
                .gaps = gaps,
                .distance_scores = scores});
      }
    }
  }
}

// So that it does not matter which sequences a batch has besides.
TEST_P(AttentionKernelTest, DistancesOfRowsAreThoseOfPositions) {
  AttentionShape shape = {.dtype = GetParam(), .heads = 1, .head_dim = 64, .queries = {140}};
  shape.rule = {20, 20};
  AttentionProblem by_rows(shape);
  shape.distances = true;
  AttentionProblem by_positions(shape);
  EXPECT_EQ(by_rows.Run(), by_positions.Run());
}

TEST_P(AttentionKernelTest, LargeScoresNeitherOverflowNorVanish) {
  // Scores of some hundreds: one key takes all. In f32 the sums that make a score of 500 err by
  // some 1e-5, and so do the weights, which is much beside a rounding of the result.
  Expect({.heads = 1, .head_dim = 64, .queries = {100}, .deviation = 9},
         GetParam() == DType::kF32 ? 1000 : 3);
}

// A rounding of such a score, times the factor of its power of two, is far from 0.
TEST_P(AttentionKernelTest, EqualHugeScoresShareEvenly) {
  constexpr float kValue = 50000;  // scores of about 2e10
  for (const bool distances : {false, true}) {
    AttentionProblem problem({.dtype = GetParam(),
                              .heads = 1,
                              .head_dim = 64,
                              .queries = {150},
                              .distances = distances,
                              .gaps = distances});
    problem.Fill(0, kValue);
    EXPECT_THAT(problem.Run(), Each(FloatNear(kValue, kValue / 100)));
  }
}

TEST_P(AttentionKernelTest, ASequencesBitsDependOnItAlone) {
  const int64_t heads = 2, head_dim = 64;
  AttentionShape alone = {.dtype = GetParam(), .heads = heads, .head_dim = head_dim};
  alone.queries = {150};
  AttentionProblem one(alone);
  const std::vector<float> expected = one.Run();
  // Neighbours of NaN must not be seen.
  for (const std::vector<int64_t>& others : {std::vector<int64_t>{1}, {200, 3}, {16, 64, 150}}) {
    AttentionShape together = alone;
    together.queries.insert(together.queries.end(), others.begin(), others.end());
    AttentionProblem many(together);
    many.CopySequence(one, 0, 0);
    for (size_t s = 1; s < together.queries.size(); ++s) many.Fill(s, NAN);
    std::vector<float> context = many.Run();
    context.resize(expected.size());
    EXPECT_EQ(context, expected);

    std::rotate(together.queries.begin(), together.queries.begin() + 1, together.queries.end());
    AttentionProblem behind(together);
    behind.CopySequence(one, 0, others.size());
    context = behind.Run();
    context.erase(context.begin(), context.end() - static_cast<std::ptrdiff_t>(expected.size()));
    EXPECT_EQ(context, expected);
  }
}

TEST_P(AttentionKernelTest, WhatIsNotThereIsRefused) {
  const DType dtype = GetParam();
  const int64_t largest = 256;
  EXPECT_TRUE(HasAttention(dtype, largest));
  for (int64_t head_dim : {int64_t{0}, int64_t{-8}, int64_t{2}, int64_t{6}, largest + 8}) {
    EXPECT_FALSE(HasAttention(dtype, head_dim));
    EXPECT_EQ(PrepareAttention(dtype, head_dim), cudaErrorInvalidValue);
    EXPECT_EQ(LaunchAttention(dtype, {}, nullptr, 1, 1, head_dim, nullptr), cudaErrorInvalidValue);
  }
  EXPECT_EQ(HasAttention(dtype, 12), dtype == DType::kF32);
  EXPECT_EQ(LaunchAttention(dtype, {}, nullptr, 0, 4, 32, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchAttention(dtype, {}, nullptr, INT32_MAX, 2, 32, nullptr),
            cudaErrorInvalidConfiguration);
}

// Their sum only grows: added one by one, each would lose what is small beside all before it.
TEST(SimtAttentionTest, ManyValuesOfOneSignKeepTheirDigits) {
  constexpr float kValue = 0.7f;
  AttentionProblem problem(
      {.dtype = DType::kF32, .heads = 1, .head_dim = 32, .queries = {1}, .keys = {20'000}});
  problem.Fill(0, kValue);
  EXPECT_THAT(problem.Run(), Each(FloatNear(kValue, 1e-5f)));
}

TEST(SimtAttentionTest, WideAndOddHeads) {
  for (int64_t head_dim : {4, 12, 100, 132, 256}) {
    AttentionProblem problem(
        {.dtype = DType::kF32, .heads = 2, .head_dim = head_dim, .queries = {40, 7}});
    ExpectAttention(problem);
  }
}

}  // namespace
}  // namespace attendant::cuda
