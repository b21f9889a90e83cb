// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/batching/request_queue_fixture.h"

namespace attendant {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

struct TurnCase {
  std::string name;
  std::vector<std::vector<int64_t>> requests;  // the lengths of each one's sequences
  std::vector<Items> batches;
};

class TurnTest : public RequestQueueTest, public testing::WithParamInterface<TurnCase> {};

TEST_P(TurnTest, TakesByTable) {
  for (const std::vector<int64_t>& lens : GetParam().requests) Add(lens);
  for (const Items& batch : GetParam().batches) EXPECT_EQ(Take(), batch);
  EXPECT_THAT(Take(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, TurnTest,
    testing::Values(
        TurnCase{"FifoUpToAQuantum",
                 {{10}, {10}, {10}, {10}, {10}},
                 {{{1, 0}, {2, 0}, {3, 0}, {4, 0}}, {{5, 0}}}},
        TurnCase{"FillsToTheExactNumberOfSequences",
                 {{1, 1, 1}, {1, 1, 1}},
                 {{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}}, {{2, 2}}}},
        TurnCase{"WholeWhenAFullBatchHoldsIt",
                 {{10, 10, 10, 10}, {10}},
                 {{{1, 0}, {1, 1}, {1, 2}, {1, 3}}, {{2, 0}}}},
        TurnCase{"WholeInTwoBatches",
                 {{40}, {10, 10, 10}, {9}},
                 {{{2, 0}, {2, 1}, {2, 2}, {3, 0}}, {{1, 0}}}},
        TurnCase{"ALargeRequestYieldsAfterAQuantum",
                 {{10, 10, 10, 10, 10, 10}, {10}, {4}},
                 {{{1, 0}, {2, 0}, {3, 0}, {1, 1}}, {{1, 2}, {1, 3}, {1, 4}, {1, 5}}}},
        TurnCase{"AloneItFillsBatches",
                 {{10, 10, 10, 10, 10}},
                 {{{1, 0}, {1, 1}, {1, 2}, {1, 3}}, {{1, 4}}}},
        TurnCase{"TwoLargeOnesShareUntilAFullBatchHoldsTheRest",
                 {{10, 10, 10, 10, 10, 10, 10}, {10, 10, 10, 10, 10, 10, 10}},
                 {{{1, 0}, {2, 0}, {1, 1}, {2, 1}},
                  {{1, 2}, {2, 2}, {1, 3}, {1, 4}},
                  {{1, 5}, {1, 6}, {2, 3}, {2, 4}},
                  {{2, 5}, {2, 6}}}},
        TurnCase{"WhatIsLeftOfATurnCountsInTheNext",
                 {{6, 6, 6, 6, 6, 6, 6, 6, 6}, {10, 10, 10, 10, 10}},
                 {{{1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 1}},
                  {{2, 2}, {2, 3}, {2, 4}, {1, 3}},
                  {{1, 4}, {1, 5}, {1, 6}, {1, 7}, {1, 8}}}},
        TurnCase{"ShortOnesGoBeforeALongOne", {{35}, {9}, {9}}, {{{2, 0}, {3, 0}}, {{1, 0}}}},
        TurnCase{"ALongSequenceOfALargeRequestSavesUp",
                 {{30, 30}, {10}, {10}, {10}, {10}, {10}},
                 {{{2, 0}, {3, 0}, {4, 0}, {5, 0}}, {{6, 0}}, {{1, 0}}, {{1, 1}}}},
        TurnCase{"ALongSequenceGoesFirstOnceItWasPassedOver",
                 {{30}, {1}, {1}, {1}, {1}, {1}, {1}},
                 {{{2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}}, {{1, 0}, {7, 0}}}},
        TurnCase{"BesideAsManyShortOnesALongOneHasItsTurn",
                 {{20}, {10}, {10}, {1}},
                 {{{1, 0}, {2, 0}, {3, 0}}, {{4, 0}}}},
        TurnCase{"LongSequencesShareABatchWithEachOther",
                 {{20}, {20}, {20}},
                 {{{1, 0}, {2, 0}}, {{3, 0}}}},
        TurnCase{"ShortOnesFillTheRest",
                 {{9, 9, 9}, {9}, {9}, {4}},
                 {{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {4, 0}}, {{3, 0}}}},
        TurnCase{"WhatDoesNotFitBeginsTheNextBatch",
                 {{10}, {10}, {10}, {9}, {7}, {1}},
                 {{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {6, 0}}, {{5, 0}}}},
        TurnCase{"OrderInsideARequestIsKept",
                 {{40}, {9, 20, 1}, {2}},
                 {{{2, 0}, {3, 0}}, {{1, 0}}, {{2, 1}, {2, 2}}}},
        TurnCase{"TheLongestFillsABatchOfItsOwn", {{40}, {40}}, {{{1, 0}}, {{2, 0}}}}),
    [](const auto& test) { return test.param.name; });

TEST_F(RequestQueueTest, ShortRequestsDoNotStarveLongSequences) {
  Add({40});
  int batches_without = 0;
  for (int batch = 0; batch < 50; ++batch) {
    while (queue_.requests() < 5) Add({10});
    const bool has_long = requests_[Take()[0].first - 1].tokens() == 40;
    batches_without = has_long ? 0 : batches_without + 1;
    EXPECT_LE(batches_without, 2) << "a round of the others, and a batch of short ones";
    if (has_long) Add({40});
  }
}

TEST_F(RequestQueueTest, OnceTheirTurnHasComeLongSequencesRunInEveryOtherBatch) {
  for (int i = 0; i < 4; ++i) Add({20});
  Take();
  int batches_without = 0;
  for (int batch = 0; batch < 50; ++batch) {
    while (queue_.requests() < 5) Add({batch % 2 == 0 ? 10 : 20});
    bool has_long = false;
    for (const auto& [request, sequence] : Take()) {
      has_long |= requests_[request - 1].tokens() == 20;
    }
    batches_without = has_long ? 0 : batches_without + 1;
    EXPECT_LE(batches_without, 1);
  }
}

TEST_F(RequestQueueTest, ANewRequestWaitsForOneQuantumOfEachLargeOne) {
  Add(std::vector<int64_t>(20, 5));
  EXPECT_THAT(Take(), SizeIs(5));
  Add(std::vector<int64_t>(20, 5));
  Add({5});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 5), Pair(2, 0), Pair(2, 1), Pair(3, 0), Pair(1, 6)));
}

TEST_F(RequestQueueTest, HigherPriorityGoesFirst) {
  Add({1}, -1);
  Add({1}, 0);
  Add({1}, 7);
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(2, 0), Pair(1, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceGoesBeforeShortOnesOfALowerPriority) {
  Add({9}, 0);
  Add({30}, 1);
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0), Pair(1, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceLeftOutDoesNotGoBeforeAHigherPriority) {
  Add({20}, 0);
  Add({9}, 0);
  Add({20}, 0);
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0)));
  Add({10, 10, 10}, 1);
  EXPECT_THAT(Take(), ElementsAre(Pair(4, 0), Pair(4, 1), Pair(4, 2)));
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(3, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceLeftOutGoesBesideATrickleOfAHigherPriority) {
  Add({20}, 0);
  Add({9}, 0);
  Add({1}, 1);
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(2, 0)));
  Add({9}, 0);
  Add({1}, 1);
  EXPECT_THAT(Take(), ElementsAre(Pair(5, 0), Pair(1, 0), Pair(4, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceIsOwedUntilItsPriorityHasRoom) {
  Add({20}, 0);
  Add({9}, 0);
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0)));
  Add({10, 10, 10}, 1);
  Add({9}, 0);
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(3, 1), Pair(3, 2), Pair(4, 0)));
  Add({10, 10, 10, 10}, 1);
  Add({9}, 0);
  EXPECT_THAT(Take(), SizeIs(4)) << "full before its turn";
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(6, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceBehindAnotherIsNotOwedTheNextBatch) {
  Add({20});
  Add({30});
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0)));
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(4, 0)));
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(5, 0)));
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0)));
}

TEST_F(RequestQueueTest, ABatchThatBeginsWithALongSequenceTakesOthersInTheirOrder) {
  Add({20});
  Add({15});
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0)));
  Add({10});
  Add({4});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(5, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceThatDidNotFitIsOwedThoughLongOnesAreMoreNow) {
  for (int64_t len : {10, 9, 9, 28, 10, 10, 8}) Add({len});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0), Pair(5, 0)));
  EXPECT_THAT(Take(), ElementsAre(Pair(4, 0), Pair(6, 0)));
}

TEST_F(RequestQueueTest, TheNextLongSequenceLeftOutIsOwedWhatACancelledOneWas) {
  QueuedRequest& owed = Add({20});
  for (int64_t len : {10, 10, 10, 9, 5, 20, 30}) Add({len});
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0), Pair(3, 0), Pair(4, 0), Pair(5, 0)));
  queue_.Remove(owed);
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(7, 0), Pair(6, 0), Pair(9, 0)));
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(10, 0))) << "a long one has just run";
  EXPECT_THAT(Take(), ElementsAre(Pair(8, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceThatHadNoTurnIsNotOwedWhatACancelledOneWas) {
  QueuedRequest& owed = Add({30});
  Add({10, 10, 10, 10});
  Add({20});
  EXPECT_THAT(Take(), SizeIs(4));
  Add({9});
  queue_.Remove(owed);
  EXPECT_THAT(Take(), ElementsAre(Pair(4, 0)));
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(5, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceThatRanIsNotOwedTheNextBatch) {
  Add({30, 30});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0)));
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0)));
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 1)));
}

TEST_F(RequestQueueTest, LongSequencesGoBeforeALowerPriorityBehindAnotherLongOne) {
  Add({15}, 1);
  Add({15}, 1);
  Add({2}, 1);
  for (int i = 0; i < 3; ++i) Add({8}, 0);
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0)));
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(4, 0)));
}

TEST_F(RequestQueueTest, AnOverdueSequenceIsNoReasonToLeaveOutLongOnes) {
  Add({5}, -1);
  Add({20}, 0);
  EXPECT_THAT(Take(At(150)), ElementsAre(Pair(1, 0), Pair(2, 0)));
}

TEST_F(RequestQueueTest, ArrivalOfAHigherPriorityBetweenTheParts) {
  Add(std::vector<int64_t>(8, 10));
  Take();
  Add({10, 10, 10}, 5);
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0), Pair(2, 1), Pair(2, 2), Pair(1, 4)));
}

struct OverdueCase {
  std::string name;
  int64_t now_ms;
  std::vector<int64_t> low;  // arrives at 1 ms
  Items first_batch;
};

class OverdueTest : public RequestQueueTest, public testing::WithParamInterface<OverdueCase> {};

TEST_P(OverdueTest, TakesByTable) {
  Add(GetParam().low, -1);
  Add(std::vector<int64_t>(8, 10), 0);
  EXPECT_EQ(Take(At(GetParam().now_ms)), GetParam().first_batch);
}

INSTANTIATE_TEST_SUITE_P(
    Table, OverdueTest,
    testing::Values(OverdueCase{"NotYet", 100, {5}, {{2, 0}, {2, 1}, {2, 2}, {2, 3}}},
                    OverdueCase{"AtItsTime", 101, {5}, {{1, 0}, {2, 0}, {2, 1}, {2, 2}}},
                    OverdueCase{"AQuantumOnly", 101, {10, 10}, {{1, 0}, {2, 0}, {2, 1}, {2, 2}}},
                    OverdueCase{"AQuarterOfTheSequencesOnly",
                                101,
                                {5, 5, 5},
                                {{1, 0}, {2, 0}, {2, 1}, {2, 2}, {1, 1}}},
                    OverdueCase{"ALongOneSavesUp", 101, {20}, {{2, 0}, {2, 1}, {2, 2}, {2, 3}}}),
    [](const auto& test) { return test.param.name; });

TEST_F(RequestQueueTest, ALowerPriorityGetsAQuantumEachTimeItIsOverdue) {
  Add({10, 10, 10}, -1);
  Add(std::vector<int64_t>(16, 10), 0);
  EXPECT_THAT(Take(At(101)), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(2, 1), Pair(2, 2)));
  EXPECT_THAT(Take(At(200)), ElementsAre(Pair(2, 3), Pair(2, 4), Pair(2, 5), Pair(2, 6)));
  EXPECT_THAT(Take(At(201)), ElementsAre(Pair(1, 1), Pair(2, 7), Pair(2, 8), Pair(2, 9)));
}

TEST_F(RequestQueueTest, ALongOverdueSequenceGoesAfterFourBatches) {
  Add({40}, -1);
  Add(std::vector<int64_t>(16, 10), 0);
  for (int batch = 0; batch < 3; ++batch) EXPECT_EQ(Take(At(101))[0].first, 2u);
  EXPECT_THAT(Take(At(101)), ElementsAre(Pair(1, 0)));
}

TEST_F(RequestQueueTest, AnOverdueRequestIsServedThoughItsTurnIsUsedUp) {
  Add(std::vector<int64_t>(9, 6), -1);
  Add({10, 10, 10, 5}, 0);
  EXPECT_THAT(Take(), SizeIs(4)) << "its turn came, and its sequence did not fit";
  Add({6}, -1);
  std::vector<int64_t> low;  // sequences of the low priority in each batch
  for (int64_t ms = 1000; ms < 2200; ms += 100) {
    now_ = At(ms);
    QueuedRequest& high = Add({8, 8, 8, 8, 8}, 0);
    int64_t sequences = 0;
    for (const auto& [request, sequence] : Take(now_)) {
      sequences += requests_[request - 1].priority < 0 ? 1 : 0;
    }
    low.push_back(sequences);
    queue_.Remove(high);
  }
  EXPECT_THAT(low, ElementsAre(1, 1, 1, 2, 1, 1, 1, 2, 0, 0, 0, 0));
}

TEST_F(RequestQueueTest, OverdueSequencesLeaveRoomForHigherPriorities) {
  Add(std::vector<int64_t>(45, 1), -1);
  for (int64_t batch = 0; batch < 4; ++batch) {
    now_ = At(1000 + 200 * batch);
    const QueuedRequest& high = Add({1}, 0);
    EXPECT_THAT(Take(now_), Contains(Pair(high.id, 0)));
  }
}

TEST_F(RequestQueueTest, OverdueRequestsLetALongSequenceOfAHigherPriorityGo) {
  for (int i = 0; i < 6; ++i) Add({9}, -1);
  Add({40}, 0);
  EXPECT_THAT(Take(At(150)), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0), Pair(4, 0)));
  EXPECT_THAT(Take(At(150)), ElementsAre(Pair(7, 0)));
  Add({10, 10, 10}, 0);
  EXPECT_EQ(Take(At(150))[0], (std::pair<RequestId, size_t>(5, 0)));
}

TEST_F(RequestQueueTest, WhatOverdueRequestsLeaveToALongSequenceTheyGetLater) {
  for (int i = 0; i < 6; ++i) Add({10}, -1);
  Add({40}, 0);
  Add({10, 10, 10}, 0);
  EXPECT_THAT(Take(At(150)), ElementsAre(Pair(1, 0), Pair(8, 0), Pair(8, 1), Pair(8, 2)));
  EXPECT_THAT(Take(At(150)), ElementsAre(Pair(7, 0)));
  Add({10, 10, 10}, 0);
  EXPECT_THAT(Take(At(150)), ElementsAre(Pair(2, 0), Pair(3, 0), Pair(9, 0), Pair(9, 1)));
}

TEST_F(RequestQueueTest, ALongSequenceThatDoesNotFitIsStillOwed) {
  Add({10, 10, 10, 5}, 1);
  Add({10});
  Add({20});
  Add({5});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(1, 1), Pair(1, 2), Pair(1, 3), Pair(4, 0)));
  Add({10, 10, 10}, 1);
  EXPECT_THAT(Take(), ElementsAre(Pair(5, 0), Pair(5, 1), Pair(5, 2), Pair(2, 0)));
  Add({9});
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(6, 0)));
}

class ManySequencesTest : public RequestQueueTest {
 protected:
  ManySequencesTest() : RequestQueueTest(40) {}
};

TEST_F(ManySequencesTest, AQuarterOfABatchGoesToOverdueRequests) {
  for (int i = 0; i < 8; ++i) Add({2}, -1);
  Add(std::vector<int64_t>(7, 6), 0);
  const Items batch = Take(At(150));
  ASSERT_THAT(batch, SizeIs(10));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(batch[i].first, i + 1);
  for (size_t i = 5; i < 10; ++i) EXPECT_EQ(batch[i].first, 9u);
}

class OneSequenceTest : public RequestQueueTest {
 protected:
  OneSequenceTest() : RequestQueueTest(1) {}
};

TEST_F(OneSequenceTest, EveryFourthBatchGoesToOverdueRequests) {
  for (int i = 0; i < 2; ++i) Add({1}, -1);
  for (int i = 0; i < 6; ++i) Add({1}, 0);
  std::vector<RequestId> order;
  for (int i = 0; i < 8; ++i) order.push_back(Take(At(150)).at(0).first);
  EXPECT_THAT(order, ElementsAre(3, 4, 5, 1, 6, 7, 8, 2));
}

TEST_F(RequestQueueTest, TheLongestWithoutProgressIsServedFirst) {
  Add({10, 10}, -1);
  Add({10, 10}, -2);
  Add(std::vector<int64_t>(12, 10), 0);
  EXPECT_EQ(Take(At(150))[0], (std::pair<RequestId, size_t>(1, 0)));
  EXPECT_EQ(Take(At(150))[0], (std::pair<RequestId, size_t>(2, 0)));
  EXPECT_EQ(Take(At(150))[0].first, 3u);
}

}  // namespace
}  // namespace attendant
