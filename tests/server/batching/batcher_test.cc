// SPDX-License-Identifier: Apache-2.0
// What a batcher answers and how it groups. How requests end otherwise: batcher_end_test.cc.
#include "server/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "absl/time/clock.h"
#include "server/retry/retry_hint.h"
#include "tests/server/batching/batcher_fixture.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using FirstIds = std::vector<int32_t>;

TEST_F(BatcherTest, AnswersWithWhatWasAskedFor) {
  Start();
  Answer answer;
  WorkRequest request = Request(5, {3}, answer);
  request.encode().outputs.last_hidden_state = true;
  batcher_->Submit(std::move(request));
  ASSERT_TRUE(answer.Wait().ok());
  ASSERT_EQ(answer.Results().size(), 1u);
  EXPECT_THAT(answer.Results()[0].last_hidden_state, ElementsAre(5, 0, 6, 1, 7, 2));
  EXPECT_THAT(answer.Results()[0].pooled, ElementsAre(18, 3));
  EXPECT_GE(answer.Wait()->queue, absl::ZeroDuration());
  EXPECT_GT(answer.Wait()->compute, absl::ZeroDuration());
}

TEST_F(BatcherTest, LeavesOutWhatWasNotAskedFor) {
  Start();
  Answer pooled, states;
  Submit(5, {3}, pooled);
  WorkRequest request = Request(5, {2}, states);
  request.encode().outputs = {.last_hidden_state = true};
  batcher_->Submit(std::move(request));
  ASSERT_TRUE(pooled.Wait().ok());
  EXPECT_THAT(pooled.Results()[0].last_hidden_state, IsEmpty());
  ASSERT_TRUE(states.Wait().ok());
  EXPECT_THAT(states.Results()[0].pooled, IsEmpty());
  EXPECT_THAT(states.Results()[0].last_hidden_state, ElementsAre(5, 0, 6, 1));
}

TEST_F(BatcherTest, CutsPooledVectorsToTheirDims) {
  Start();
  Answer answer;
  WorkRequest request = Request(5, {3, 1}, answer);
  request.encode().outputs.dims = 1;
  batcher_->Submit(std::move(request));
  ASSERT_TRUE(answer.Wait().ok());
  EXPECT_THAT(answer.Results()[0].pooled, ElementsAre(18));
  EXPECT_THAT(answer.Results()[1].pooled, ElementsAre(105));
}

TEST_F(BatcherTest, MixesRequestsOfDifferentOutputsInOneBatch) {
  Start();
  Answer blocker, pooled, states;
  Occupy(blocker);
  Submit(5, {2}, pooled);
  WorkRequest request = Request(7, {2}, states);
  request.encode().outputs = {.last_hidden_state = true};
  batcher_->Submit(std::move(request));
  engine_.Open();
  ASSERT_TRUE(pooled.Wait().ok());
  ASSERT_TRUE(states.Wait().ok());
  EXPECT_THAT(pooled.Results()[0].pooled, ElementsAre(11, 2));
  EXPECT_THAT(states.Results()[0].last_hidden_state, ElementsAre(7, 0, 8, 1));
  EXPECT_THAT(LaterBatches(), ElementsAre(FirstIds{5, 7}));
}

TEST_F(BatcherTest, AnIdleWorkerDoesNotWaitForMore) {
  Start();
  for (int32_t i = 0; i < 3; ++i) {
    Answer answer;
    Submit(i, {1}, answer);
    EXPECT_TRUE(answer.Wait().ok());
  }
  EXPECT_THAT(engine_.batches(), ElementsAre(FirstIds{0}, FirstIds{1}, FirstIds{2}));
}

TEST_F(BatcherTest, WhatQueuedWhileBusyGoesTogetherInOrder) {
  Start();
  Answer blocker;
  std::array<Answer, 3> answers;
  Occupy(blocker);
  for (int32_t i = 0; i < 3; ++i) Submit(10 + i, {1}, answers[static_cast<size_t>(i)]);
  EXPECT_THAT(observer_.queue(), Pair(3, 3));
  engine_.Open();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(FirstIds{10, 11, 12}));
}

TEST_F(BatcherTest, FillsBatchesToTheExactBudgets) {
  Start();
  Answer blocker;
  std::array<Answer, 5> answers;
  Occupy(blocker);
  Submit(1, {6}, answers[0]);
  Submit(2, {4}, answers[1]);
  Submit(3, {1, 1}, answers[2]);
  Submit(4, {1}, answers[3]);
  Submit(5, {1}, answers[4]);
  engine_.Open();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(FirstIds{3, 103, 4, 5}, FirstIds{1, 2}));
}

TEST_F(BatcherTest, HigherPriorityOvertakesWhatIsQueued) {
  Start();
  Answer blocker, low, high;
  Occupy(blocker);
  Submit(1, {8}, low);
  WorkRequest urgent = Request(2, {8}, high);
  urgent.priority = 1;
  batcher_->Submit(std::move(urgent));
  engine_.Open();
  EXPECT_TRUE(low.Wait().ok());
  EXPECT_TRUE(high.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(FirstIds{2}, FirstIds{1}));
}

TEST_F(BatcherTest, SplitsALargeRequestAndAnswersInItsOrder) {
  Start();
  Answer answer;
  Submit(1, {9, 2, 9, 3, 4, 3, 1}, answer);
  ASSERT_TRUE(answer.Wait().ok());
  EXPECT_THAT(engine_.batches(), ElementsAre(FirstIds{1}, FirstIds{101}, FirstIds{201},
                                             FirstIds{301, 401, 501}, FirstIds{601}));
  const std::vector<float> lens = {9, 2, 9, 3, 4, 3, 1};
  for (size_t i = 0; i < lens.size(); ++i) {
    EXPECT_EQ(answer.Results()[i].pooled[1], lens[i]) << i;
  }
}

TEST_F(BatcherTest, EachSessionWorksAtTheSameTime) {
  Start(Options(), 3);
  std::array<Answer, 3> answers;
  engine_.Close();
  for (size_t i = 0; i < answers.size(); ++i) {
    Submit(1, {1}, answers[i]);
    engine_.AwaitStarted(i + 1);  // while those before are still inside
  }
  engine_.Open();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
}

TEST_F(BatcherTest, WorkersShareOneLargeRequest) {
  Start(Options(), 3);
  Answer answer;
  engine_.Close();
  Submit(1, {10, 10, 10}, answer);
  engine_.AwaitStarted(3);
  engine_.Open();
  EXPECT_TRUE(answer.Wait().ok());
}

TEST_F(BatcherTest, TracedRequestsKnowTheirBatches) {
  Start();
  Answer busy, untraced, first, second;
  std::vector<TracedBatch> batches_of_first, batches_of_second;
  Occupy(busy);
  Submit(1, {1}, untraced);
  WorkRequest traced = Request(2, {2}, first);
  traced.trace = 1000;
  traced.batches = &batches_of_first;
  batcher_->Submit(std::move(traced));
  traced = Request(3, {2, 9}, second);  // the long sequence goes after the short ones
  traced.trace = 2000;
  traced.batches = &batches_of_second;
  batcher_->Submit(std::move(traced));
  engine_.Open();
  ASSERT_TRUE(first.Wait().ok() && second.Wait().ok() && untraced.Wait().ok());
  ASSERT_EQ(batches_of_first.size(), 1u);
  const TracedBatch& shared = batches_of_first[0];
  EXPECT_TRUE(shared.told);
  EXPECT_EQ(shared.tokens, 5);
  EXPECT_EQ(shared.sequences, 3);
  EXPECT_EQ(shared.requests, 3);
  EXPECT_EQ(shared.worker, 0);
  EXPECT_EQ(shared.compute, first.Wait()->compute);
  ASSERT_EQ(batches_of_second.size(), 2u);
  const TracedBatch& other = batches_of_second[1];
  EXPECT_EQ(batches_of_second[0].id, shared.id);
  EXPECT_FALSE(batches_of_second[0].told) << "one request tells of a batch";
  EXPECT_NE(other.id, shared.id);
  EXPECT_TRUE(other.told);
  EXPECT_EQ(other.tokens, 9);
  EXPECT_GE(other.start, shared.start + shared.compute);
}

TEST_F(BatcherTest, ARequestThatFailsTellsOfTheBatchesBefore) {
  Start();
  Answer busy, fails, answered;
  std::vector<TracedBatch> batches_of_failed, batches_of_answered;
  Occupy(busy);
  WorkRequest traced = Request(1, {2, 9}, fails);  // the long sequence goes after the short ones
  traced.trace = 1000;
  traced.batches = &batches_of_failed;
  batcher_->Submit(std::move(traced));
  traced = Request(2, {2}, answered);
  traced.trace = 2000;
  traced.batches = &batches_of_answered;
  batcher_->Submit(std::move(traced));
  engine_.SetVerdict([](const PackedBatch& batch) {
    return batch.tokens() == 9 ? absl::InternalError("the kernel failed") : absl::OkStatus();
  });
  engine_.Open();
  EXPECT_TRUE(answered.Wait().ok());
  EXPECT_TRUE(absl::IsInternal(fails.Wait().status()));
  ASSERT_EQ(batches_of_failed.size(), 1u);
  ASSERT_EQ(batches_of_answered.size(), 1u);
  EXPECT_EQ(batches_of_failed[0].id, batches_of_answered[0].id);
  EXPECT_NE(batches_of_failed[0].told, batches_of_answered[0].told);
}

TEST_F(BatcherTest, ARequestKnowsItsFirstBatchesOnly) {
  BatcherOptions options = Options();
  options.max_queued_tokens = 1000;
  Start(options);
  Answer answer;
  std::vector<TracedBatch> batches;
  WorkRequest request = Request(1, std::vector<int>(kMaxTracedBatches + 1, 10), answer);
  request.trace = 1;
  request.batches = &batches;
  batcher_->Submit(std::move(request));
  ASSERT_TRUE(answer.Wait().ok());
  EXPECT_EQ(batches.size(), kMaxTracedBatches);
}

TEST_F(BatcherTest, ResultsDoNotDependOnTheCompany) {
  Start();
  Answer alone, blocker, before, batched;
  Submit(42, {3}, alone);
  ASSERT_TRUE(alone.Wait().ok());
  engine_.Close();
  Submit(0, {1}, blocker);
  engine_.AwaitStarted(2);
  Submit(7, {4}, before);
  Submit(42, {3}, batched);
  engine_.Open();
  ASSERT_TRUE(batched.Wait().ok());
  EXPECT_EQ(alone.Results()[0].pooled, batched.Results()[0].pooled);
}

TEST_F(BatcherTest, TellsItsObserver) {
  Start();
  Answer blocker, one, two;
  Occupy(blocker);
  Submit(1, {2, 2}, one);
  Submit(2, {2}, two);
  EXPECT_THAT(observer_.queue(), Pair(6, 2));
  engine_.Open();
  EXPECT_TRUE(one.Wait().ok());
  EXPECT_TRUE(two.Wait().ok());
  EXPECT_THAT(observer_.queue(), Pair(0, 0));
  EXPECT_THAT(observer_.batches(), ElementsAre(ObservedBatch{1, 1, 1}, ObservedBatch{6, 3, 2}));
  EXPECT_THAT(observer_.rejected(), IsEmpty());
}

TEST_F(BatcherTest, CompletesOnTheExecutor) {
  Start();
  Answer answered, refused;
  Submit(1, {1}, answered);
  Submit(1, {11}, refused);
  answered.Wait();
  refused.Wait();
  EXPECT_EQ(answered.thread(), executor_.thread_id());
  EXPECT_EQ(refused.thread(), executor_.thread_id());
}

TEST_F(BatcherTest, WithADelayABatchGoesWhenItIsFull) {
  BatcherOptions options = Options();
  options.max_queue_delay = absl::Hours(1);
  Start(options);
  Answer first, second;
  Submit(1, {4}, first);
  Submit(2, {6}, second);
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_THAT(engine_.batches(), ElementsAre(FirstIds{1, 2}));
}

TEST_F(BatcherTest, WithADelayABatchGoesWhenItIsOver) {
  BatcherOptions options = Options();
  options.max_queue_delay = absl::Milliseconds(2);
  Start(options, 2);
  Answer answer;
  Submit(1, {4}, answer);
  ASSERT_TRUE(answer.Wait().ok());
  EXPECT_GE(answer.Wait()->queue, absl::Milliseconds(2));
}

TEST_F(BatcherTest, RefusesWhatTheQueueCannotHold) {
  BatcherOptions options = Options();
  options.max_queued_tokens = 12;
  Start(options);
  Answer blocker, fits, exact, over;
  Occupy(blocker);
  EXPECT_NE(Submit(1, {10}, fits), 0u);
  EXPECT_EQ(Submit(2, {3}, over), 0u);
  EXPECT_NE(Submit(3, {2}, exact), 0u);
  EXPECT_EQ(over.WaitForCode(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(over.Wait().status().message()),
              HasSubstr("queue full: 13 of 12 tokens queued"));
  ASSERT_TRUE(RetryAfter(over.Wait().status()).has_value());
  EXPECT_GE(*RetryAfter(over.Wait().status()), absl::Milliseconds(1));
  EXPECT_THAT(observer_.rejected(), ElementsAre(RejectReason::kQueueFull));
  engine_.Open();
  EXPECT_TRUE(fits.Wait().ok());
  EXPECT_TRUE(exact.Wait().ok());
}

TEST_F(BatcherTest, RefusesMoreRequestsThanTheQueueHolds) {
  BatcherOptions options = Options();
  options.max_queued_requests = 1;
  Start(options);
  Answer blocker, fits, over, nothing;
  Occupy(blocker);
  Submit(1, {1}, fits);
  Submit(2, {1}, over);
  Submit(3, {}, nothing);
  EXPECT_THAT(std::string(over.Wait().status().message()),
              HasSubstr("queue full: 2 of 1 requests queued"));
  EXPECT_TRUE(nothing.Wait().ok()) << "it needs no place in the queue";
  engine_.Open();
  EXPECT_TRUE(fits.Wait().ok());
}

struct ImpossibleCase {
  std::vector<int> lens;
  std::string message;
};

TEST_F(BatcherTest, RefusesWhatCouldNeverRun) {
  Start();
  const std::vector<ImpossibleCase> cases = {
      {{3, 11}, "sequence 1 has 11 tokens, the limit is 10"},
      {std::vector<int>(11, 10), "the request has 110 tokens, the limit is 100"},
      {{1, 0}, "sequence 1 has no tokens"}};
  for (const ImpossibleCase& c : cases) {
    Answer answer;
    EXPECT_EQ(Submit(1, c.lens, answer), 0u);
    EXPECT_EQ(answer.WaitForCode(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(answer.Wait().status().message()), HasSubstr(c.message));
  }
  Answer largest;
  Submit(1, std::vector<int>(10, 10), largest);
  EXPECT_TRUE(largest.Wait().ok());
}

// A request whose sequences are all masked.
TEST_F(BatcherTest, AnswersARequestWithoutSequencesOnTheExecutor) {
  Start();
  Answer blocker, nothing, refused;
  Occupy(blocker);
  EXPECT_EQ(Submit(1, {}, nothing), 0u);
  ASSERT_TRUE(nothing.Wait().ok()) << "while the worker is busy";
  EXPECT_TRUE(nothing.Results().empty());
  EXPECT_EQ(nothing.thread(), executor_.thread_id());
  engine_.Open();
  batcher_->Drain(absl::InfiniteFuture());
  Submit(2, {}, refused);
  EXPECT_EQ(refused.WaitForCode(), absl::StatusCode::kUnavailable);
}

TEST(RejectReasonTest, HasNames) {
  EXPECT_EQ(RejectReasonName(RejectReason::kQueueFull), "queue_full");
  EXPECT_EQ(RejectReasonName(RejectReason::kDraining), "draining");
}

}  // namespace
}  // namespace attendant
