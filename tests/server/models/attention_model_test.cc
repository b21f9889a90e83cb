// SPDX-License-Identifier: Apache-2.0
#include "server/models/attention_model.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

TEST(QueueUnitsTest, AreRoundedUpAndAtLeastOne) {
  constexpr int64_t kUnit = int64_t{1} << 20;
  EXPECT_EQ(QueueUnits(0), 1);
  EXPECT_EQ(QueueUnits(kUnit), 1);
  EXPECT_EQ(QueueUnits(kUnit + 1), 2);
  EXPECT_EQ(QueueUnits(AttentionLimits{}.max_operations), int64_t{1} << 17);
}

}  // namespace
}  // namespace attendant
