// SPDX-License-Identifier: Apache-2.0
#include "server/log/line_limit.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

TEST(LineLimitTest, AWindowHasSoManyLinesAndTheNextSaysHowManyWereLeftOut) {
  const absl::Time start = absl::UnixEpoch();
  LineLimit limit(2, absl::Seconds(10));
  EXPECT_EQ(limit.Admit(start), 0);
  EXPECT_EQ(limit.Admit(start + absl::Seconds(9)), 0);
  EXPECT_EQ(limit.Admit(start + absl::Seconds(9)), std::nullopt);
  EXPECT_EQ(limit.Admit(start + absl::Milliseconds(9999)), std::nullopt);
  EXPECT_EQ(limit.Admit(start + absl::Seconds(10)), 2);
  EXPECT_EQ(limit.Admit(start + absl::Seconds(19)), 0);
  EXPECT_EQ(limit.Admit(start + absl::Seconds(19)), std::nullopt);
  EXPECT_EQ(limit.Admit(start + absl::Seconds(20)), 1) << "it begins with its first line";
}

}  // namespace
}  // namespace attendant
