// SPDX-License-Identifier: Apache-2.0
#include "server/requests/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(RankingTest, TheHighestScoreIsFirstAndEqualOnesKeepTheirOrder) {
  EXPECT_THAT(ByScore(std::vector<float>{0.5f, 2, -1, 2}), ElementsAre(1, 3, 0, 2));
}

TEST(RankingTest, WhatIsNoNumberIsLast) {
  EXPECT_THAT(ByScore(std::vector<float>{kNan, 0.1f, 0.9f}), ElementsAre(2, 1, 0));
  EXPECT_THAT(ByScore(std::vector<float>{0.1f, kNan, 0.9f, kNan, -kInfinity, 0.5f}),
              ElementsAre(2, 5, 0, 4, 1, 3));
}

}  // namespace
}  // namespace attendant
