// SPDX-License-Identifier: Apache-2.0
#include "server/requests/memory/byte_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/access/connections.h"
#include "server/metrics/server_metrics.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/retry/retry_hint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(ByteBudgetTest, RefusesWhatDoesNotFitAndTakesBackWhatGoes) {
  ByteBudget budget({.what = "answers", .flag = "--max_answers", .limit = 100});
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

TEST(ByteBudgetTest, WhatNeverFitsIsNoReasonToTryAgain) {
  ByteBudget budget({.what = "answers", .flag = "--max_answers", .limit = 100});
  const absl::Status never = budget.Acquire(101).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(RetryAfter(never).has_value());
  const ByteBudget::Share held = *budget.Acquire(60);
  EXPECT_EQ(budget.Acquire(41, 60).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(budget.Acquire(41, 59).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(budget.Acquire(40, 60).ok());
}

TEST(ByteBudgetTest, APartTakesOfTheWholeAndGivesBackToIt) {
  int refused = 0;
  ByteBudget whole({.what = "all", .flag = "--all", .limit = 100});
  ByteBudget part(
      {.what = "some", .flag = "--some", .limit = 60, .whole = &whole, .on_refused = [&refused] {
         ++refused;
       }});
  {
    const ByteBudget::Share other = *whole.Acquire(50);
    EXPECT_THAT(std::string(part.Acquire(51).status().message()), HasSubstr("--all"));
    EXPECT_TRUE(part.Acquire(50).ok()) << "a refusal of the whole took nothing of the part";
    EXPECT_EQ(refused, 0);
  }
  ByteBudget::Share share = *part.Acquire(20);
  share.Add(*part.Acquire(40));
  EXPECT_EQ(share.bytes(), 60);
  EXPECT_FALSE(part.Acquire(1).ok());
  EXPECT_EQ(refused, 1);
  EXPECT_FALSE(whole.Acquire(41).ok());
  share = ByteBudget::Share();
  EXPECT_TRUE(whole.Acquire(100).ok());
}

TEST(ByteBudgetTest, ErrorsHaveAReserve) {
  ByteBudget budget({.what = "answers", .flag = "--max_answers", .limit = 16 << 20});
  const ByteBudget::Share all = *budget.Acquire(16 << 20);
  EXPECT_FALSE(budget.Acquire(1).ok());
  const ByteBudget::Share reserve = *budget.Acquire(1 << 20, 0, ByteBudget::Use::kError);
  EXPECT_FALSE(budget.Acquire(1, 0, ByteBudget::Use::kError).ok());
}

TEST(ByteBudgetTest, TheReserveOfASmallBudgetIsLargeEnoughForErrors) {
  constexpr int64_t kLeastReserve = 64 << 10;
  ByteBudget budget({.what = "answers", .flag = "--max_answers", .limit = 1000});
  EXPECT_FALSE(budget.Acquire(1001).ok());
  EXPECT_FALSE(budget.Acquire(kLeastReserve + 1001, 0, ByteBudget::Use::kError).ok());
  EXPECT_TRUE(budget.Acquire(kLeastReserve + 1000, 0, ByteBudget::Use::kError).ok());
}

TEST(ByteBudgetTest, AMovedShareGoesBackOnce) {
  ByteBudget budget({.what = "answers", .flag = "--max_answers", .limit = 100});
  {
    ByteBudget::Share share = *budget.Acquire(60);
    ByteBudget::Share other = std::move(share);
    EXPECT_FALSE(budget.Acquire(60).ok());
  }
  const ByteBudget::Share all = *budget.Acquire(100);
  EXPECT_FALSE(budget.Acquire(1).ok());
}

TEST(ByteBudgetTest, AnAssignedShareGivesBackItsOwnAtOnce) {
  ByteBudget budget({.what = "answers", .flag = "--max_answers", .limit = 100});
  ByteBudget::Share share = *budget.Acquire(60);
  ByteBudget::Share other = *budget.Acquire(40);
  share = std::move(other);
  EXPECT_EQ(budget.taken(), 40);
  EXPECT_EQ(share.bytes(), 40);
}

TEST(MemoryBudgetsTest, ConnectionsShareTheWhole) {
  ServerMetrics metrics("test");
  MemoryBudgets budgets({.max_pending_request_bytes = 100,
                         .max_pending_response_bytes = 100,
                         .max_open_stream_bytes = 3 * kStreamBytes,
                         .connection_request_bytes = 60,
                         .connection_response_bytes = 60,
                         .connection_stream_bytes = 2 * kStreamBytes},
                        &metrics);
  const std::shared_ptr<ConnectionBudgets> a = budgets.ForConnection("a");
  const std::shared_ptr<ConnectionBudgets> b = budgets.ForConnection("b");
  EXPECT_FALSE(a->AcquireRequest(61).ok());
  EXPECT_FALSE(a->AcquireResponse(61).ok());
  const ByteBudget::Share request = *a->AcquireRequest(60);
  const ByteBudget::Share response = *a->AcquireResponse(60);
  EXPECT_FALSE(b->AcquireRequest(41).ok());
  EXPECT_FALSE(b->AcquireResponse(41).ok());
  EXPECT_TRUE(b->AcquireRequest(40).ok());
  EXPECT_TRUE(b->AcquireResponse(40).ok());
  const ByteBudget::Share streams[] = {*a->AcquireStream(0), *a->AcquireStream(0)};
  EXPECT_FALSE(a->AcquireStream(0).ok());
  const ByteBudget::Share stream = *b->AcquireStream(0);
  EXPECT_FALSE(b->AcquireStream(0).ok());
  for (const auto& [reason, count] : {std::pair{"connection_memory", 3},
                                      {"request_memory", 1},
                                      {"response_memory", 1},
                                      {"stream_memory", 1}}) {
    EXPECT_THAT(metrics.Scrape(), HasSubstr(absl::StrCat("attendant_refused_total{reason=\"",
                                                         reason, "\"} ", count, "\n")));
  }
}

TEST(MemoryBudgetsTest, SayWhatEachConnectionHolds) {
  MemoryBudgets budgets;
  const std::shared_ptr<ConnectionBudgets> connection = budgets.ForConnection("a");
  const absl::StatusOr<ByteBudget::Share> request = connection->AcquireRequest(100);
  const absl::StatusOr<ByteBudget::Share> response = connection->AcquireResponse(7);
  const absl::StatusOr<ByteBudget::Share> stream = connection->AcquireStream(0);
  ASSERT_TRUE(request.ok() && response.ok() && stream.ok());
  std::vector<ConnectionReport> reports(2);
  reports[0].peer = "a";
  reports[1].peer = "b";
  budgets.AddHeld(reports);
  EXPECT_EQ(reports[0].request_memory_bytes, 100);
  EXPECT_EQ(reports[0].response_memory_bytes, 7);
  EXPECT_EQ(reports[0].stream_memory_bytes, kStreamBytes);
  EXPECT_EQ(reports[1].request_memory_bytes, 0);
}

}  // namespace
}  // namespace attendant
