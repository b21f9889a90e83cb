// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/attend_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace attendant::client {
namespace {

using ::testing::HasSubstr;

TEST(AttendReportTest, DrawsWeightsThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(WeightsStrips({.shape = {1, 1, 1, 4}, .values = {1, kInfinity, -kInfinity, kNan}}),
              HasSubstr("  | █  |\n"));
  EXPECT_THAT(WeightsStrips({.shape = {1, 1, 1, 2}, .values = {kNan, kNan}}),
              HasSubstr("  |  |\n"));
  EXPECT_THAT(WeightsStrips({.shape = {1, 1, 1, 3}, .values = {1, 0.5, 0}}),
              HasSubstr("  |█▒ |\n"));
}

}  // namespace
}  // namespace attendant::client
