// SPDX-License-Identifier: Apache-2.0
// What a queue holds: its bounds, sums and deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/server/batching/request_queue_fixture.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_F(RequestQueueTest, SumsUpWhatComesBeforeANewRequest) {
  for (int i = 0; i < 2; ++i) Add({30, 20}, 3);
  Add({9}, 1);
  EXPECT_EQ(queue_.HigherThan(3).tokens, 0);
  EXPECT_EQ(queue_.HigherThan(1).tokens, 100);
  EXPECT_EQ(queue_.HigherThan(0).tokens, 109);
  EXPECT_EQ(queue_.HigherThan(0).sequences, 5);
  EXPECT_EQ(queue_.AheadAt(3, 0, 40).tokens, 2 * 10) << "a turn each";
  EXPECT_EQ(queue_.AheadAt(3, 0, 41).tokens, 2 * 50) << "five turns each";
  EXPECT_EQ(queue_.AheadAt(3, 0, 1000).tokens, 100) << "all of them";
  EXPECT_EQ(queue_.AheadAt(1, 0, 1).tokens, 9);
  EXPECT_EQ(queue_.AheadAt(1, 0, 1).sequences, 1);
  EXPECT_EQ(queue_.AheadAt(2, 0, 1).tokens, 0);
  EXPECT_EQ(queue_.HigherThan(0).head_ns, 109 * kHeadNs);
  EXPECT_EQ(queue_.AheadAt(3, 0, 40).head_ns, 20 * kHeadNs);
  EXPECT_EQ(queue_.Snapshot().head_ns, 109 * kHeadNs);
  Take();
  EXPECT_EQ(queue_.HigherThan(-1).tokens, queue_.tokens());
  EXPECT_EQ(queue_.HigherThan(-1).head_ns, queue_.tokens() * kHeadNs);
  EXPECT_EQ(queue_.Snapshot().head_ns, queue_.tokens() * kHeadNs);
}

TEST_F(RequestQueueTest, BoundsTokensExactly) {
  Add({100});
  EXPECT_TRUE(queue_.CheckRoom(1, 100).ok());
  const absl::Status full = queue_.CheckRoom(1, 101);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("queue full: 201 of 200 tokens queued"));
}

TEST_F(RequestQueueTest, BoundsRequestsExactly) {
  for (int i = 0; i < 8; ++i) Add({1});
  EXPECT_TRUE(queue_.CheckRoom(1, 1).ok());
  Add({1});
  const absl::Status full = queue_.CheckRoom(1, 1);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("queue full: 10 of 9 requests queued"));
}

TEST_F(RequestQueueTest, TakingMakesRoom) {
  for (int i = 0; i < 5; ++i) Add({10, 10, 10, 10});
  EXPECT_FALSE(queue_.CheckRoom(1, 1).ok());
  Take();
  EXPECT_TRUE(queue_.CheckRoom(1, 40).ok());
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
  QueuedRequest& request = Add({10, 10, 10, 10, 1}, 0, At(100));
  Take();
  EXPECT_THAT(queue_.TakeExpired(At(100)), ElementsAre(&request));
  EXPECT_EQ(queue_.tokens(), 0);
  EXPECT_EQ(queue_.Snapshot().sequences, 0);
}

TEST_F(RequestQueueTest, RemoveForgetsARequestOnce) {
  QueuedRequest& request = Add({2, 3}, 0, At(100));
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
