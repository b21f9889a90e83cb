// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batch_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attendant {
namespace {

constexpr absl::Duration kDelay = absl::Milliseconds(5);

absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

BatchPolicy Policy(absl::Duration delay) {
  return BatchPolicy({.max_batch_tokens = 100, .max_batch_sequences = 4, .max_queue_delay = delay});
}

struct DecisionCase {
  std::string name;
  absl::Duration delay;
  QueueSnapshot queue;
  absl::Time now;
  bool run;
  absl::Time wait_until;
};

class DecideTest : public testing::TestWithParam<DecisionCase> {};

TEST_P(DecideTest, DecidesByTable) {
  const DecisionCase& c = GetParam();
  const BatchDecision decision = Policy(c.delay).Decide(c.queue, c.now);
  EXPECT_EQ(decision.run, c.run);
  if (!c.run) {
    EXPECT_EQ(decision.wait_until, c.wait_until);
  }
}

constexpr absl::Duration kNone = absl::ZeroDuration();
const absl::Time kEver = absl::InfiniteFuture();

INSTANTIATE_TEST_SUITE_P(
    Table, DecideTest,
    testing::Values(
        DecisionCase{"EmptyWaitsForever", kNone, {0, 0}, At(0), false, kEver},
        DecisionCase{"EmptyWaitsForeverWithDelay", kDelay, {0, 0}, At(0), false, kEver},
        DecisionCase{
            "EmptyWaitsWhileDraining", kDelay, {0, 0, 0, kEver, true}, At(0), false, kEver},
        DecisionCase{"OneTokenRunsAtOnce", kNone, {1, 1, 0, At(7)}, At(7), true, {}},
        DecisionCase{"ClockSetBackDoesNotDelay", kNone, {1, 1, 0, At(9)}, At(7), true, {}},
        DecisionCase{"DelayCountsFromOldest", kDelay, {1, 1, 0, At(7)}, At(9), false, At(12)},
        DecisionCase{"DelayOneShort", kDelay, {99, 3, 0, At(7)}, At(11), false, At(12)},
        DecisionCase{"DelayOver", kDelay, {1, 1, 0, At(7)}, At(12), true, {}},
        DecisionCase{"FullByTokens", kDelay, {100, 1, 0, At(7)}, At(7), true, {}},
        DecisionCase{"NextDoesNotFit", kDelay, {120, 2, 0, At(7)}, At(7), true, {}},
        DecisionCase{"FullBySequences", kDelay, {4, 4, 0, At(7)}, At(7), true, {}},
        DecisionCase{"DrainingDoesNotWait", kDelay, {1, 1, 0, At(7), true}, At(7), true, {}}),
    [](const auto& test) { return test.param.name; });

// Batches that the policy makes of a queue of these lengths.
std::vector<std::vector<int64_t>> Split(const std::vector<int64_t>& lens) {
  const BatchPolicy policy = Policy(kNone);
  std::vector<std::vector<int64_t>> batches;
  BatchFill fill;
  for (int64_t len : lens) {
    if (batches.empty() || !policy.Fits(fill, len)) {
      batches.emplace_back();
      fill = {};
      EXPECT_TRUE(policy.Fits(fill, len)) << "starved: " << len;
    }
    batches.back().push_back(len);
    fill.tokens += len;
    ++fill.sequences;
  }
  return batches;
}

using Batches = std::vector<std::vector<int64_t>>;

TEST(BatchPolicyTest, FillsToTheExactTokenBudget) {
  EXPECT_EQ(Split({50, 49, 1, 1}), (Batches{{50, 49, 1}, {1}}));
  EXPECT_EQ(Split({100, 100}), (Batches{{100}, {100}}));
}

TEST(BatchPolicyTest, FillsToTheExactNumberOfSequences) {
  EXPECT_EQ(Split({1, 1, 1, 1, 1}), (Batches{{1, 1, 1, 1}, {1}}));
}

TEST(BatchPolicyTest, MixesLengthsFreely) {
  EXPECT_EQ(Split({1, 90, 2, 7}), (Batches{{1, 90, 2, 7}}));
}

TEST(BatchPolicyTest, NothingOvertakesWhatDoesNotFit) {
  EXPECT_EQ(Split({60, 50, 10, 90}), (Batches{{60}, {50, 10}, {90}}));
}

TEST(BatchPolicyTest, TheLongestIsNeverStarvedByShortOnes) {
  EXPECT_EQ(Split({1, 100, 1, 100, 1}), (Batches{{1}, {100}, {1}, {100}, {1}}));
}

TEST(BatchPolicyTest, RefusesWhatOverflows) {
  EXPECT_FALSE(Policy(kNone).Fits({}, INT64_MAX));
  EXPECT_FALSE(Policy(kNone).Fits({.tokens = 100, .sequences = 1}, INT64_MAX));
}

}  // namespace
}  // namespace attendant
