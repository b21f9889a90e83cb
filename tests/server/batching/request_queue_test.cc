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

absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

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
      request.encode().sequences.emplace_back().token_ids.resize(static_cast<size_t>(len));
    }
    request.tokens_waiting = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    queue_.Add(request);
    return request;
  }

  // (request, sequence) of each item of the next batch.
  std::vector<std::pair<RequestId, size_t>> Take() {
    std::vector<BatchItem> batch;
    queue_.TakeBatch(policy_, batch);
    std::vector<std::pair<RequestId, size_t>> items;
    for (const BatchItem& item : batch) items.emplace_back(item.request->id, item.sequence);
    return items;
  }

  const BatchPolicy policy_{{.max_batch_tokens = 10, .max_batch_sequences = 3}};
  RequestQueue queue_{{.max_tokens = 20, .max_requests = 3}};
  std::deque<PendingRequest> requests_;
};

TEST_F(RequestQueueTest, IsFifoInsideAPriority) {
  Add({1});
  Add({1});
  Add({1});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0)));
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(RequestQueueTest, HigherPriorityGoesFirst) {
  Add({1}, -1);
  Add({1}, 0);
  Add({1}, 7);
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(2, 0), Pair(1, 0)));
}

TEST_F(RequestQueueTest, SplitsARequestAndKeepsItsPlace) {
  Add({6, 6, 6});
  Add({1});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0)));
  EXPECT_EQ(queue_.tokens(), 13);
  EXPECT_EQ(queue_.requests(), 2);
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 2), Pair(2, 0)));
  EXPECT_EQ(queue_.tokens(), 0);
  EXPECT_EQ(queue_.requests(), 0);
}

TEST_F(RequestQueueTest, ArrivalOfAHigherPriorityBetweenTheParts) {
  Add({6, 6});
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0)));
  Add({1}, 5);
  EXPECT_THAT(Take(), ElementsAre(Pair(2, 0), Pair(1, 1)));
}

TEST_F(RequestQueueTest, BoundsTokensExactly) {
  Add({10});
  EXPECT_TRUE(queue_.CheckRoom(10).ok());
  const absl::Status full = queue_.CheckRoom(11);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("queue full: 21 of 20 tokens queued"));
}

TEST_F(RequestQueueTest, BoundsRequestsExactly) {
  Add({1});
  Add({1});
  EXPECT_TRUE(queue_.CheckRoom(1).ok());
  Add({1});
  const absl::Status full = queue_.CheckRoom(1);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("queue full: 4 of 3 requests queued"));
}

TEST_F(RequestQueueTest, TakingMakesRoom) {
  Add({10});
  Add({10});
  EXPECT_FALSE(queue_.CheckRoom(1).ok());
  Take();
  EXPECT_TRUE(queue_.CheckRoom(10).ok());
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
  PendingRequest& request = Add({6, 6, 1}, 0, At(100));
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
