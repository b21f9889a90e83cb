// SPDX-License-Identifier: Apache-2.0
// Which lengths have most of the next turns. The other sums: request_queue_totals_test.cc.
#include "server/batching/level_totals.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace attendant {
namespace {

class LevelTotalsTest : public testing::Test {
 protected:
  static QueuedRequest Waiting(const std::vector<int64_t>& lens) {
    QueuedRequest request;
    for (const int64_t len : lens) {
      request.encode().sequences.emplace_back().token_ids.resize(static_cast<size_t>(len));
    }
    request.tokens_waiting = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    return request;
  }

  // A quantum is 10 tokens.
  LevelTotals totals_{BatchPolicy({.max_batch_tokens = 40, .max_batch_sequences = 5})};
};

TEST_F(LevelTotalsTest, LongSequencesAreMostWhenTheyHaveMoreTokens) {
  totals_.Count(Waiting({20}), 1);
  EXPECT_TRUE(totals_.MostlyLong());
  totals_.Count(Waiting({10, 10}), 1);
  EXPECT_FALSE(totals_.MostlyLong()) << "as many";
  totals_.Count(Waiting({11}), 1);
  EXPECT_TRUE(totals_.MostlyLong());
  totals_.Count(Waiting({20}), -1);
  EXPECT_FALSE(totals_.MostlyLong());
}

TEST_F(LevelTotalsTest, ALargeRequestCountsWithAQuantum) {
  totals_.Count(Waiting(std::vector<int64_t>(9, 20)), 1);
  totals_.Count(Waiting({9}), 1);
  EXPECT_TRUE(totals_.MostlyLong());
  totals_.Count(Waiting({1}), 1);
  EXPECT_FALSE(totals_.MostlyLong());
}

TEST_F(LevelTotalsTest, ARequestCountsByItsNextSequence) {
  QueuedRequest request = Waiting({5, 30});
  totals_.Count(request, 1);
  EXPECT_FALSE(totals_.MostlyLong());
  totals_.Count(request, -1);
  request.tokens_waiting -= 5;
  ++request.next_sequence;
  totals_.Count(request, 1);
  EXPECT_TRUE(totals_.MostlyLong());
}

}  // namespace
}  // namespace attendant
