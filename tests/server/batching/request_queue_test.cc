// SPDX-License-Identifier: Apache-2.0
#include "server/batching/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

using Items = std::vector<std::pair<RequestId, size_t>>;  // request, sequence

class RequestQueueTest : public testing::Test {
 protected:
  PendingRequest& Add(const std::vector<int64_t>& lens, int priority = 0,
                      absl::Time deadline = absl::InfiniteFuture()) {
    PendingRequest& request = requests_.emplace_back();
    request.id = requests_.size();
    request.arrival = At(static_cast<int64_t>(request.id));
    request.priority = priority;
    request.deadline = deadline;
    for (int64_t len : lens) {
      SequenceInput& sequence = request.encode().sequences.emplace_back();
      sequence.token_ids.resize(static_cast<size_t>(len));
      sequence.head_ns = kHeadNs * len;
    }
    request.head_ns_waiting = request.head_ns();
    request.tokens_waiting = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    queue_.Add(request);
    return request;
  }

  Items Take(absl::Time now = At(0)) {
    std::vector<BatchItem> batch;
    queue_.TakeBatch(now, batch);
    Items items;
    for (const BatchItem& item : batch) items.emplace_back(item.request->id, item.sequence);
    return items;
  }

  static constexpr int64_t kHeadNs = 7;  // of a token

  // A quantum is 10 tokens.
  const BatchPolicy policy_{{.max_batch_tokens = 40,
                             .max_batch_sequences = 5,
                             .max_priority_wait = absl::Milliseconds(100)}};
  RequestQueue queue_{{.max_tokens = 200, .max_requests = 9}, policy_};
  std::deque<PendingRequest> requests_;
};

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
                 {{20}, {10, 10, 10}, {10}},
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
                 {{30}, {8}, {9}, {9}, {9}, {9}},
                 {{{2, 0}, {3, 0}, {4, 0}, {5, 0}}, {{1, 0}, {6, 0}}}},
        TurnCase{"LongSequencesShareABatchWithEachOther",
                 {{20}, {20}, {20}},
                 {{{1, 0}, {2, 0}}, {{3, 0}}}},
        TurnCase{"ShortOnesFillTheRest",
                 {{9, 9, 9}, {9}, {9}, {4}},
                 {{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {4, 0}}, {{3, 0}}}},
        TurnCase{"WhatDoesNotFitBeginsTheNextBatch",
                 {{10}, {10}, {10}, {9}, {7}, {1}},
                 {{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {6, 0}}, {{5, 0}}}},
        TurnCase{
            "OrderInsideARequestIsKept", {{9, 30, 1}, {2}}, {{{1, 0}, {2, 0}}, {{1, 1}, {1, 2}}}},
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
                    OverdueCase{
                        "AQuantumOnly", 101, {5, 5, 5}, {{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}},
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

TEST_F(RequestQueueTest, TheLongestWithoutProgressIsServedFirst) {
  Add({10, 10}, -1);
  Add({10, 10}, -2);
  Add(std::vector<int64_t>(12, 10), 0);
  EXPECT_EQ(Take(At(150))[0], (std::pair<RequestId, size_t>(1, 0)));
  EXPECT_EQ(Take(At(150))[0], (std::pair<RequestId, size_t>(2, 0)));
  EXPECT_EQ(Take(At(150))[0].first, 3u);
}

TEST_F(RequestQueueTest, SumsUpWhatComesBeforeANewRequest) {
  for (int i = 0; i < 2; ++i) Add({30, 20}, 3);
  Add({9}, 1);
  EXPECT_EQ(queue_.HigherThan(3).tokens, 0);
  EXPECT_EQ(queue_.HigherThan(1).tokens, 100);
  EXPECT_EQ(queue_.HigherThan(0).tokens, 109);
  EXPECT_EQ(queue_.HigherThan(0).sequences, 5);
  EXPECT_EQ(queue_.AheadAt(3, 40).tokens, 2 * 10) << "a turn each";
  EXPECT_EQ(queue_.AheadAt(3, 41).tokens, 2 * 50) << "five turns each";
  EXPECT_EQ(queue_.AheadAt(3, 1000).tokens, 100) << "all of them";
  EXPECT_EQ(queue_.AheadAt(1, 1).tokens, 9);
  EXPECT_EQ(queue_.AheadAt(1, 1).sequences, 1);
  EXPECT_EQ(queue_.AheadAt(2, 1).tokens, 0);
  EXPECT_EQ(queue_.HigherThan(0).head_ns, 109 * kHeadNs);
  EXPECT_EQ(queue_.AheadAt(3, 40).head_ns, 20 * kHeadNs);
  EXPECT_EQ(queue_.Snapshot().head_ns, 109 * kHeadNs);
  Take();
  EXPECT_EQ(queue_.HigherThan(-1).tokens, queue_.tokens());
  EXPECT_EQ(queue_.HigherThan(-1).head_ns, queue_.tokens() * kHeadNs);
  EXPECT_EQ(queue_.Snapshot().head_ns, queue_.tokens() * kHeadNs);
}

TEST_F(RequestQueueTest, BoundsTokensExactly) {
  Add({100});
  EXPECT_TRUE(queue_.CheckRoom(100).ok());
  const absl::Status full = queue_.CheckRoom(101);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("queue full: 201 of 200 tokens queued"));
}

TEST_F(RequestQueueTest, BoundsRequestsExactly) {
  for (int i = 0; i < 8; ++i) Add({1});
  EXPECT_TRUE(queue_.CheckRoom(1).ok());
  Add({1});
  const absl::Status full = queue_.CheckRoom(1);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("queue full: 10 of 9 requests queued"));
}

TEST_F(RequestQueueTest, TakingMakesRoom) {
  for (int i = 0; i < 5; ++i) Add({10, 10, 10, 10});
  EXPECT_FALSE(queue_.CheckRoom(1).ok());
  Take();
  EXPECT_TRUE(queue_.CheckRoom(40).ok());
}

TEST_F(RequestQueueTest, TakesWhatHasExpiredAndNothingElse) {
  Add({1}, 0, At(300));
  Add({1}, 9, At(100));
  Add({1});
  EXPECT_EQ(queue_.next_deadline(), At(100));
  EXPECT_THAT(queue_.TakeExpired(At(99)), IsEmpty());
  EXPECT_THAT(queue_.TakeExpired(At(100)), ElementsAre(&requests_[1]));
  EXPECT_EQ(queue_.next_deadline(), At(300));
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(3, 0)));
  EXPECT_EQ(queue_.next_deadline(), absl::InfiniteFuture());
  EXPECT_THAT(queue_.TakeExpired(At(1000)), IsEmpty());
}

TEST_F(RequestQueueTest, RestOfASplitRequestExpires) {
  PendingRequest& request = Add({10, 10, 10, 10, 1}, 0, At(100));
  Take();
  EXPECT_THAT(queue_.TakeExpired(At(100)), ElementsAre(&request));
  EXPECT_EQ(queue_.tokens(), 0);
  EXPECT_EQ(queue_.Snapshot().sequences, 0);
}

TEST_F(RequestQueueTest, RemoveForgetsARequestOnce) {
  PendingRequest& request = Add({2, 3}, 0, At(100));
  Add({4});
  queue_.Remove(request);
  queue_.Remove(request);
  EXPECT_EQ(queue_.tokens(), 4);
  EXPECT_EQ(queue_.next_deadline(), absl::InfiniteFuture());
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0)));
}

TEST_F(RequestQueueTest, SnapshotKnowsTheOldestWhateverItsPriority) {
  Add({1, 2}, 0);
  Add({3}, 8);
  const QueueSnapshot snapshot = queue_.Snapshot();
  EXPECT_EQ(snapshot.tokens, 6);
  EXPECT_EQ(snapshot.sequences, 3);
  EXPECT_EQ(snapshot.oldest_arrival, At(1));
  Take();
  EXPECT_EQ(queue_.Snapshot().oldest_arrival, absl::InfiniteFuture());
}

}  // namespace
}  // namespace attendant
