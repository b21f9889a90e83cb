// SPDX-License-Identifier: Apache-2.0
#include "server/requests/byte_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/batching/retry_hint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(ByteBudgetTest, RefusesWhatDoesNotFitAndTakesBackWhatGoes) {
  ByteBudget budget("answers", "--max_answers", 100);
  absl::StatusOr<ByteBudget::Share> first = budget.Acquire(70);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(budget.Acquire(30).ok()) << "exactly full";
  const absl::Status full = budget.Acquire(31).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("answers hold 70 bytes and this one takes 31, the limit is 100"));
  EXPECT_TRUE(RetryAfter(full).has_value());
  *first = ByteBudget::Share();
  EXPECT_TRUE(budget.Acquire(100).ok());
}

TEST(ByteBudgetTest, AMovedShareGoesBackOnce) {
  ByteBudget budget("answers", "--max_answers", 100);
  {
    ByteBudget::Share share = *budget.Acquire(60);
    ByteBudget::Share other = std::move(share);
    EXPECT_FALSE(budget.Acquire(60).ok());
  }
  const ByteBudget::Share all = *budget.Acquire(100);
  EXPECT_FALSE(budget.Acquire(1).ok());
}

}  // namespace
}  // namespace attendant
