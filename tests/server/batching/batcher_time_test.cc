// SPDX-License-Identifier: Apache-2.0
// What a batcher knows of time: deadlines that cannot be met, priorities that wait, workers that
// stall.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"
#include "server/retry/retry_hint.h"
#include "server/threads/steady_time.h"
#include "tests/server/batching/batcher_fixture.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BatcherTimeTest : public BatcherTest {
 protected:
  // Estimates a minute a token.
  static BatcherOptions SlowOptions() {
    BatcherOptions options = Options();
    std::vector<CostModel::Sample> samples;
    for (const int64_t len : {1, 2, 5, 10}) {
      samples.push_back({{1, len, len * len}, absl::Minutes(len)});
      samples.push_back({{3, 3 * len, 3 * len * len}, absl::Minutes(3 * len)});
    }
    options.cost = CostModel::Fit(samples);
    return options;
  }

  RequestId SubmitFor(absl::Duration time, const std::vector<int>& lens, Answer& answer) {
    WorkRequest request = Request(1, lens, answer);
    request.deadline = SteadyNow() + time;
    return batcher_->Submit(std::move(request));
  }

  // Until the observer was told so many times.
  std::vector<int> AwaitStalled(size_t reports) {
    while (observer_.stalled().size() < reports) std::this_thread::yield();
    return observer_.stalled();
  }
};

TEST_F(BatcherTimeTest, ADeadlineThatCannotBeMetIsRefusedAtOnce) {
  Start(SlowOptions());
  Answer refused;
  EXPECT_EQ(SubmitFor(absl::Minutes(1), {5}, refused), 0u);
  EXPECT_EQ(refused.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(refused.Wait().status().message()),
              HasSubstr("the answer is expected in 1m15s"));
  EXPECT_THAT(observer_.rejected(), ElementsAre(RejectReason::kInfeasible));
  EXPECT_THAT(engine_.batches(), IsEmpty());
}

TEST_F(BatcherTimeTest, CancelledByItsDeadlineEndsSo) {
  constexpr absl::Duration kClientIsAhead = absl::Milliseconds(9);
  Start();
  Answer running, queued, blocker, early;
  engine_.Close();
  batcher_->Cancel(SubmitFor(kClientIsAhead, {1}, running));
  EXPECT_EQ(running.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  Submit(0, {10}, blocker);
  batcher_->Cancel(SubmitFor(kClientIsAhead, {1}, queued));
  EXPECT_EQ(queued.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  batcher_->Cancel(SubmitFor(absl::Hours(1), {1}, early));
  EXPECT_EQ(early.WaitForCode(), absl::StatusCode::kCancelled);
  EXPECT_THAT(observer_.rejected(), ElementsAre(RejectReason::kDeadline, RejectReason::kDeadline,
                                                RejectReason::kCancelled));
  engine_.Open();
  EXPECT_TRUE(blocker.Wait().ok());
}

TEST_F(BatcherTimeTest, AnIdleServerTriesAFewThatItWouldRefuse) {
  Start(SlowOptions());
  std::vector<int> answered;
  for (int i = 1; i <= 160; ++i) {
    Answer answer;
    SubmitFor(absl::Minutes(1), {5}, answer);
    if (answer.Wait().ok()) answered.push_back(i);
  }
  ASSERT_FALSE(answered.empty());
  EXPECT_EQ(answered[0], 8);
  EXPECT_GT(answered.size(), 100u) << "each batch was faster than the estimate, which fell";
}

TEST_F(BatcherTimeTest, TheEstimateMayBeFourTimesTheTruth) {
  Start(SlowOptions());
  Answer admitted, patient;
  EXPECT_NE(SubmitFor(absl::Minutes(2), {5}, admitted), 0u) << "a quarter of 5 minutes is certain";
  EXPECT_TRUE(admitted.Wait().ok());
  Submit(1, {5}, patient);
  EXPECT_TRUE(patient.Wait().ok());
}

TEST_F(BatcherTimeTest, ARequestWithoutSequencesTakesNoTime) {
  Start(SlowOptions());
  Answer blocker, nothing;
  Occupy(blocker);
  EXPECT_EQ(SubmitFor(absl::Seconds(30), {}, nothing), 0u);
  EXPECT_TRUE(nothing.Wait().ok()) << nothing.Wait().status();
  engine_.Open();
  EXPECT_TRUE(blocker.Wait().ok());
}

TEST_F(BatcherTimeTest, ARunningBatchCountsToo) {
  Start(SlowOptions());
  Answer blocker, refused, other;
  engine_.Close();
  Submit(0, {10}, blocker);
  engine_.AwaitStarted(1);
  EXPECT_EQ(SubmitFor(absl::Minutes(2), {1}, refused), 0u);
  EXPECT_NE(SubmitFor(absl::Minutes(6), {1}, other), 0u);
  EXPECT_EQ(refused.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  engine_.Open();
  EXPECT_TRUE(other.Wait().ok());
}

TEST_F(BatcherTimeTest, TheQueueAheadCountsTurnByTurn) {
  Start(SlowOptions());
  Answer blocker, large[2], refused, admitted;
  engine_.Close();
  Submit(0, {10}, blocker);
  engine_.AwaitStarted(1);
  const RequestId ids[] = {Submit(1, {2, 2, 2, 2, 2, 2}, large[0]),
                           Submit(1, {2, 2, 2, 2, 2, 2}, large[1])};
  // A full batch of 10 minutes, then a turn of 2 tokens for each of the large ones, then its own.
  EXPECT_EQ(SubmitFor(absl::Minutes(8), {1}, refused), 0u);
  EXPECT_NE(SubmitFor(absl::Minutes(9), {1}, admitted), 0u);
  for (const RequestId id : ids) batcher_->Cancel(id);
  engine_.Open();
  EXPECT_TRUE(admitted.Wait().ok());
}

TEST_F(BatcherTimeTest, UnderOverloadABatchTakesOnlyWhatItCanAnswerInTime) {
  Start(SlowOptions());
  Answer blocker, late, large[2];
  engine_.Close();
  Submit(0, {10}, blocker);
  engine_.AwaitStarted(1);
  EXPECT_NE(SubmitFor(absl::Minutes(12), {1}, late), 0u);
  for (Answer& answer : large) Submit(1, {5, 5}, answer);
  engine_.Open();
  EXPECT_EQ(late.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.Wait().status().message()), HasSubstr("too near"));
  for (Answer& answer : large) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_THAT(observer_.rejected(), ElementsAre(RejectReason::kDeadline));
}

// What counts is the worker that is free first, whichever that is.
TEST_F(BatcherTimeTest, TheFirstFreeWorkerCounts) {
  for (int round = 0; round < 10; ++round) {
    Start(SlowOptions(), /*workers=*/2);
    Answer longer, shorter, admitted, refused;
    engine_.Close();
    const size_t before = engine_.batches().size();
    const bool longer_first = round % 2 == 0;
    longer_first ? Submit(0, {10}, longer) : Submit(0, {1}, shorter);
    engine_.AwaitStarted(before + 1);
    longer_first ? Submit(0, {1}, shorter) : Submit(0, {10}, longer);
    engine_.AwaitStarted(before + 2);
    EXPECT_NE(SubmitFor(absl::Minutes(1), {1}, admitted), 0u);
    EXPECT_EQ(SubmitFor(absl::Seconds(10), {1}, refused), 0u);
    engine_.Open();
    for (Answer* answer : {&longer, &shorter, &admitted}) EXPECT_TRUE(answer->Wait().ok());
    batcher_.reset();
  }
}

TEST_F(BatcherTimeTest, ALostWorkerIsNotFree) {
  Start(SlowOptions(), /*workers=*/2);
  engine_.SetVerdict([](const PackedBatch& batch) {
    return batch.token_ids()[0] == 66 ? absl::UnavailableError("GPU 0: gone") : absl::OkStatus();
  });
  Answer hit, blocker, refused;
  Submit(66, {1}, hit);
  while (observer_.lost().empty()) std::this_thread::yield();
  engine_.Close();
  Submit(0, {10}, blocker);
  engine_.AwaitStarted(2);
  EXPECT_EQ(SubmitFor(absl::Minutes(2), {1}, refused), 0u) << "the other worker needs 10 minutes";
  engine_.Open();
  EXPECT_TRUE(blocker.Wait().ok());
  EXPECT_EQ(refused.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
}

// As long as the workers need for what waits.
TEST_F(BatcherTimeTest, TheRetryHintIsTheTimeForTheQueue) {
  const auto hint = [this](const BatchShape& each, int workers) {
    BatcherOptions options = Options();
    options.max_queued_tokens = 10;
    std::vector<CostModel::Sample> samples;
    for (const int64_t len : {1, 2, 5, 10}) {
      samples.push_back(
          {{1, len, len * len},
           absl::Milliseconds(each.sequences + each.tokens * len + each.squares * len * len)});
    }
    options.cost = CostModel::Fit(samples);
    Start(options, workers);
    std::vector<Answer> blockers(static_cast<size_t>(workers));
    Answer queued, over;
    engine_.Close();
    const size_t before = engine_.batches().size();
    for (size_t i = 0; i < blockers.size(); ++i) {
      Submit(0, {10}, blockers[i]);
      engine_.AwaitStarted(before + i + 1);
    }
    Submit(1, {8}, queued);
    Submit(2, {6}, over);
    const absl::Duration delay =
        RetryAfter(over.Wait().status()).value_or(absl::InfiniteDuration());
    engine_.Open();
    for (Answer& blocker : blockers) EXPECT_TRUE(blocker.Wait().ok());
    EXPECT_TRUE(queued.Wait().ok());
    batcher_.reset();
    return absl::ToDoubleMilliseconds(delay);
  };
  EXPECT_NEAR(hint({.tokens = 10}, 1), 80, 2);
  EXPECT_NEAR(hint({.tokens = 10}, 2), 40, 2);
  EXPECT_NEAR(hint({.squares = 2}, 1), 128, 2);
}

TEST_F(BatcherTimeTest, BatchesTeachTheRetryHint) {
  BatcherOptions options = Options();
  options.max_queued_tokens = 10;
  Start(options);
  Answer first, blocker, queued, over;
  Submit(0, {10}, first);
  EXPECT_TRUE(first.Wait().ok());
  engine_.Close();
  Submit(0, {1}, blocker);
  engine_.AwaitStarted(2);
  Submit(1, {8}, queued);
  Submit(2, {6}, over);
  EXPECT_NE(RetryAfter(over.Wait().status()), absl::Milliseconds(100))
      << "which is what an unknown cost means";
  engine_.Open();
  EXPECT_TRUE(blocker.Wait().ok());
  EXPECT_TRUE(queued.Wait().ok());
}

TEST_F(BatcherTimeTest, TheRetryHintComesFromTheCostModel) {
  BatcherOptions options = SlowOptions();
  options.max_queued_tokens = 10;
  Start(options);
  Answer blocker, queued, over;
  Occupy(blocker);
  Submit(1, {5}, queued);
  Submit(2, {6}, over);
  EXPECT_EQ(RetryAfter(over.Wait().status()), absl::Seconds(10)) << "five minutes, cut";
  engine_.Open();
  EXPECT_TRUE(queued.Wait().ok());
}

TEST_F(BatcherTimeTest, PrioritiesAreLoweredToTheHighest) {
  BatcherOptions options = Options();
  options.max_priority = 0;
  Start(options);
  Answer blocker, first, low, high;
  Occupy(blocker);
  Submit(1, {10}, first);
  WorkRequest lower = Request(2, {10}, low);
  lower.priority = -1;
  batcher_->Submit(std::move(lower));
  WorkRequest higher = Request(3, {10}, high);
  higher.priority = 100;
  batcher_->Submit(std::move(higher));
  engine_.Open();
  EXPECT_TRUE(low.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(ElementsAre(1), ElementsAre(3), ElementsAre(2)));
}

TEST_F(BatcherTimeTest, AnOverdueRequestGoesBeforeHigherPriorities) {
  BatcherOptions options = Options();
  options.max_priority_wait = absl::ZeroDuration();
  Start(options);
  Answer blocker, low, high;
  Occupy(blocker);
  WorkRequest lower = Request(2, {1}, low);
  lower.priority = -1;
  batcher_->Submit(std::move(lower));
  Submit(3, {1, 1, 1, 1}, high);
  engine_.Open();
  EXPECT_TRUE(high.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(ElementsAre(2, 3, 103, 203), ElementsAre(303)));
}

TEST_F(BatcherTimeTest, AStalledWorkerIsReportedUntilItsBatchEnds) {
  BatcherOptions options = Options();
  options.stall_timeout = absl::Milliseconds(5);
  Start(options, 2);
  absl::Mutex mutex;
  std::vector<int> told;
  batcher_->SetStallListener([&](int workers) {
    absl::MutexLock lock(&mutex);
    told.push_back(workers);
  });
  Answer first, second;
  engine_.Close();
  Submit(1, {1}, first);
  EXPECT_THAT(AwaitStalled(1), ElementsAre(1));
  Submit(2, {1}, second);
  EXPECT_THAT(AwaitStalled(2), ElementsAre(1, 2));
  engine_.Open();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
  while (observer_.stalled().back() != 0) std::this_thread::yield();
  const auto recovered = [&] { return !told.empty() && told.back() == 0; };
  absl::MutexLock lock(&mutex, absl::Condition(&recovered));
  EXPECT_EQ(told.front(), 1);
}

TEST_F(BatcherTimeTest, AListenerThatComesLateIsToldOfAStall) {
  BatcherOptions options = Options();
  options.stall_timeout = absl::Milliseconds(1);
  Start(options);
  Answer answer;
  engine_.Close();
  Submit(1, {1}, answer);
  AwaitStalled(1);
  absl::Notification told;
  batcher_->SetStallListener([&](int workers) {
    if (workers == 1) told.Notify();
  });
  told.WaitForNotification();
  engine_.Open();
  EXPECT_TRUE(answer.Wait().ok());
  batcher_.reset();
}

TEST_F(BatcherTimeTest, BatchesThatEndInTimeDoNotStall) {
  BatcherOptions options = Options();
  options.stall_timeout = absl::Hours(1);
  Start(options);
  for (int i = 0; i < 20; ++i) {
    Answer answer;
    Submit(i, {1}, answer);
    EXPECT_TRUE(answer.Wait().ok());
  }
  batcher_.reset();
  EXPECT_THAT(observer_.stalled(), IsEmpty());
}

TEST(SteadyTimeTest, WaitsUntilItsDeadlineOrASignal) {
  absl::Mutex mutex;
  SteadyCondVar condition;
  absl::MutexLock lock(&mutex);
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(5);
  while (SteadyNow() < deadline) condition.WaitUntil(mutex, deadline);
  bool signalled = false;
  std::thread other([&] {
    absl::MutexLock inner(&mutex);
    signalled = true;
    condition.SignalAll();
  });
  while (!signalled) condition.WaitUntil(mutex, absl::InfiniteFuture());
  mutex.Unlock();
  other.join();
  mutex.Lock();
}

}  // namespace
}  // namespace attendant
