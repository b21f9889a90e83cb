// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/expert_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace attendant::cpu {
namespace {

struct Chosen {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Chosen Choose(const std::vector<float>& scores, size_t count) {
  Chosen chosen{std::vector<int32_t>(count), std::vector<float>(count)};
  ChooseExperts(scores, chosen.experts, chosen.weights);
  return chosen;
}

TEST(ChooseExpertsTest, TakesTheLargestWithTheirSoftmaxAmongAll) {
  const Chosen chosen = Choose({1, 3, -2, 2}, 2);
  EXPECT_EQ(chosen.experts, (std::vector<int32_t>{1, 3}));
  const float sum = std::exp(1.0f) + std::exp(3.0f) + std::exp(-2.0f) + std::exp(2.0f);
  EXPECT_NEAR(chosen.weights[0], std::exp(3.0f) / sum, 1e-6);
  EXPECT_NEAR(chosen.weights[1], std::exp(2.0f) / sum, 1e-6);
}

TEST(ChooseExpertsTest, TakesTheFirstOfEqualOnes) {
  EXPECT_EQ(Choose({0, 5, 5, 5}, 2).experts, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(Choose({4, 4}, 2).experts, (std::vector<int32_t>{0, 1}));
}

TEST(ChooseExpertsTest, LargeScoresDoNotOverflow) {
  const Chosen chosen = Choose({1000, 999}, 1);
  EXPECT_NEAR(chosen.weights[0], 1 / (1 + std::exp(-1.0f)), 1e-6);
}

TEST(ChooseExpertsTest, TakesDifferentOnesWhereScoresAreNaN) {
  const float nan = std::nanf("");
  for (const std::vector<float>& scores :
       {std::vector<float>{nan, nan, nan}, {nan, 1, 2}, {1, nan, 2}, {2, 1, nan}}) {
    std::vector<int32_t> experts = Choose(scores, 3).experts;
    std::sort(experts.begin(), experts.end());
    EXPECT_EQ(experts, (std::vector<int32_t>{0, 1, 2}));
  }
}

}  // namespace
}  // namespace attendant::cpu
