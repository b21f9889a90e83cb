// SPDX-License-Identifier: Apache-2.0
// How requests end when they are not answered: deadlines, cancellation, failing batches, drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/batching/compute_slot.h"
#include "server/threads/steady_time.h"
#include "tests/server/batching/batcher_fixture.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using FirstIds = std::vector<int32_t>;

class BatcherEndTest : public BatcherTest {
 protected:
  RequestId SubmitUntil(absl::Time deadline, int32_t first_id, const std::vector<int>& lens,
                        Answer& answer) {
    WorkRequest request = Request(first_id, lens, answer);
    request.deadline = deadline;
    return batcher_->Submit(std::move(request));
  }
};

TEST_F(BatcherEndTest, ADeadlineThatHasPassedIsNotAdmitted) {
  Start();
  Answer answer;
  EXPECT_EQ(SubmitUntil(SteadyNow() - absl::Seconds(1), 1, {1}, answer), 0u);
  EXPECT_EQ(answer.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(engine_.batches(), IsEmpty());
}

TEST_F(BatcherEndTest, ADeadlineFiresWhileEveryWorkerIsBusy) {
  Start();
  Answer blocker, late, patient;
  Occupy(blocker);
  SubmitUntil(SteadyNow() + absl::Hours(1), 1, {1}, patient);
  SubmitUntil(SteadyNow() + absl::Milliseconds(5), 2, {1}, late);
  EXPECT_EQ(late.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(patient.done());
  EXPECT_THAT(observer_.queue(), Pair(1, 1));
  engine_.Open();
  EXPECT_TRUE(patient.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(FirstIds{1}));
  EXPECT_THAT(observer_.rejected(), ElementsAre(RejectReason::kDeadline));
}

TEST_F(BatcherEndTest, ADeadlineEndsARequestWhoseBatchRuns) {
  Start();
  engine_.Close();
  std::deque<Answer> late;
  do {  // on a busy machine one may end before the worker takes it
    SubmitUntil(SteadyNow() + absl::Milliseconds(300), 1, {1}, late.emplace_back());
    EXPECT_EQ(late.back().WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  } while (!absl::StrContains(late.back().Wait().status().message(), "in the queue and a batch"));
  EXPECT_TRUE(engine_.abandoned());
  EXPECT_EQ(observer_.rejected(), std::vector<RejectReason>(late.size(), RejectReason::kDeadline));
  engine_.Open();
  Answer next;
  SubmitUntil(SteadyNow() + absl::Hours(1), 2, {1}, next);
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(BatcherEndTest, AWorkerWhoseDeviceIsLostLeavesTheRestToTheOthers) {
  Start(Options(), 2);
  std::atomic<bool> lost_told{false};
  batcher_->SetLostListener([&lost_told](const absl::Status&) { lost_told = true; });
  engine_.SetVerdict([](const PackedBatch& batch) {
    return batch.token_ids()[0] == 66 ? absl::UnavailableError("GPU 0: gone") : absl::OkStatus();
  });
  Answer hit;
  Submit(66, {1}, hit);
  EXPECT_EQ(hit.Wait().status(), absl::UnavailableError("GPU 0: gone"));
  for (int32_t id = 1; id < 20; ++id) {
    Answer answer;
    Submit(id, {1}, answer);
    EXPECT_TRUE(answer.Wait().ok());
  }
  EXPECT_FALSE(lost_told);
  batcher_.reset();
  EXPECT_THAT(observer_.lost(), ElementsAre(1));
}

TEST_F(BatcherEndTest, WithTheLastRunnerLostEverythingIsRefused) {
  Start();
  absl::Notification told;
  absl::Status why;
  batcher_->SetLostListener([&](const absl::Status& status) {
    why = status;
    told.Notify();
  });
  engine_.SetVerdict([](const PackedBatch&) { return absl::UnavailableError("GPU 0: gone"); });
  Answer running, queued, later;
  Occupy(running);
  Submit(5, {3}, queued);
  engine_.Open();
  EXPECT_EQ(running.WaitForCode(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(queued.Wait().status(), absl::UnavailableError("GPU 0: gone"));
  told.WaitForNotification();
  EXPECT_EQ(why, absl::UnavailableError("GPU 0: gone"));
  EXPECT_THAT(observer_.lost(), ElementsAre(1));
  Submit(6, {1}, later);
  EXPECT_EQ(later.WaitForCode(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(observer_.rejected(),
              ElementsAre(RejectReason::kDeviceLost, RejectReason::kDeviceLost));
  EXPECT_EQ(engine_.batches().size(), 1u);
  // Who asks afterwards is told at once.
  bool told_at_once = false;
  batcher_->SetLostListener([&told_at_once](const absl::Status&) { told_at_once = true; });
  EXPECT_TRUE(told_at_once);
}

// Who hears of it may take long, as who frees a model does.
TEST_F(BatcherEndTest, ALostRunnerLeavesItsProcessorsBeforeItIsToldOf) {
  const auto slot = std::make_shared<ComputeSlot>(Threading::System());
  ComputeSlot::User other(*slot, 1);
  BatcherOptions options = Options();
  options.slots = {slot};
  Start(options);
  bool waited = false, told = false;
  batcher_->SetLostListener([&](const absl::Status&) {
    const ComputeSlot::Turn turn(&other, [&waited] { waited = true; });
    told = true;
  });
  engine_.SetVerdict([](const PackedBatch&) { return absl::UnavailableError("GPU 0: gone"); });
  Answer hit;
  Submit(1, {1}, hit);
  EXPECT_EQ(hit.WaitForCode(), absl::StatusCode::kUnavailable);
  batcher_.reset();  // waits for the worker, which tells
  EXPECT_TRUE(told);
  EXPECT_FALSE(waited);
}

TEST_F(BatcherEndTest, WhatHasExpiredDoesNotKeepOthersOut) {
  BatcherOptions options = Options();
  options.max_queued_tokens = 10;
  Start(options);
  Answer blocker, late, next;
  Occupy(blocker);
  SubmitUntil(SteadyNow() + absl::Milliseconds(5), 1, {10}, late);
  EXPECT_EQ(late.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(Submit(2, {10}, next), 0u);
  engine_.Open();
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(BatcherEndTest, ADeadlineEndsTheRestOfASplitRequest) {
  Start();
  Answer late, next;
  engine_.Close();
  SubmitUntil(SteadyNow() + absl::Milliseconds(20), 1, {10, 10}, late);
  EXPECT_EQ(late.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  Submit(2, {1}, next);
  engine_.Open();
  EXPECT_TRUE(next.Wait().ok());
  EXPECT_THAT(engine_.batches().back(), ElementsAre(2));
  for (const FirstIds& batch : engine_.batches())
    EXPECT_THAT(batch, testing::Not(ElementsAre(101)));
}

TEST_F(BatcherEndTest, CancelledInTheQueueIsNeverComputed) {
  Start();
  Answer blocker, cancelled, next;
  Occupy(blocker);
  const RequestId id = Submit(1, {1}, cancelled);
  Submit(2, {1}, next);
  batcher_->Cancel(id);
  batcher_->Cancel(id);
  EXPECT_EQ(cancelled.WaitForCode(), absl::StatusCode::kCancelled);
  EXPECT_THAT(observer_.queue(), Pair(1, 1));
  engine_.Open();
  EXPECT_TRUE(next.Wait().ok());
  EXPECT_THAT(LaterBatches(), ElementsAre(FirstIds{2}));
  EXPECT_THAT(observer_.rejected(), ElementsAre(RejectReason::kCancelled));
}

TEST_F(BatcherEndTest, CancelledWhileItRunsCompletesAtOnce) {
  Start();
  Answer cancelled, next;
  engine_.Close();
  const RequestId id = Submit(1, {1}, cancelled);
  engine_.AwaitStarted(1);
  batcher_->Cancel(id);
  EXPECT_EQ(cancelled.WaitForCode(), absl::StatusCode::kCancelled);
  Submit(2, {1}, next);
  engine_.Open();
  EXPECT_TRUE(next.Wait().ok());
  batcher_->Cancel(id);
}

TEST_F(BatcherEndTest, ABatchIsAbandonedWhenNobodyWaitsForItAnyMore) {
  BatcherOptions pairs = Options();
  pairs.max_batch_sequences = 2;
  pairs.max_queue_delay = absl::Hours(1);
  Start(pairs);
  engine_.Close();
  Answer answers[4];
  const RequestId first = Submit(0, {1}, answers[0]);
  const RequestId second = Submit(1, {1}, answers[1]);
  engine_.AwaitStarted(1);
  batcher_->Cancel(first);
  EXPECT_FALSE(engine_.abandoned());
  batcher_->Cancel(second);
  EXPECT_TRUE(engine_.abandoned());
  engine_.Open();
  Submit(2, {1}, answers[2]);
  Submit(3, {1}, answers[3]);
  EXPECT_TRUE(answers[3].Wait().ok());
  EXPECT_FALSE(engine_.abandoned());
  batcher_.reset();
  EXPECT_THAT(observer_.batches(), ElementsAre(ObservedBatch{2, 2, 2}));
}

TEST_F(BatcherEndTest, CancellingWhatIsNotThereDoesNothing) {
  Start();
  batcher_->Cancel(0);
  batcher_->Cancel(12345);
  Answer answer;
  const RequestId id = Submit(1, {1}, answer);
  EXPECT_TRUE(answer.Wait().ok());
  batcher_->Cancel(id);
  EXPECT_THAT(observer_.rejected(), IsEmpty());
}

TEST_F(BatcherEndTest, AFailedBatchFailsItsMembersOnly) {
  Start();
  engine_.SetVerdict([](const PackedBatch& batch) {
    return batch.token_ids()[0] == 66 ? absl::InternalError("kernel says no") : absl::OkStatus();
  });
  Answer blocker, first, second, bystander, later;
  Occupy(blocker);
  Submit(66, {4}, first);
  Submit(2, {6}, second);
  Submit(3, {1}, bystander);
  engine_.Open();
  EXPECT_EQ(first.Wait().status(), absl::InternalError("kernel says no"));
  EXPECT_EQ(second.Wait().status(), absl::InternalError("kernel says no"));
  EXPECT_TRUE(bystander.Wait().ok());
  Submit(4, {1}, later);
  EXPECT_TRUE(later.Wait().ok());
}

TEST_F(BatcherEndTest, AFailureEndsTheRestOfASplitRequest) {
  Start();
  engine_.SetVerdict([](const PackedBatch& batch) {
    return batch.token_ids()[0] == 166 ? absl::InternalError("no") : absl::OkStatus();
  });
  Answer answer, next;
  Submit(66, {10, 10, 10}, answer);
  EXPECT_EQ(answer.WaitForCode(), absl::StatusCode::kInternal);
  Submit(1, {1}, next);
  EXPECT_TRUE(next.Wait().ok());
  EXPECT_THAT(engine_.batches(), ElementsAre(FirstIds{66}, FirstIds{166}, FirstIds{1}));
}

TEST_F(BatcherEndTest, WhatASessionThrowsIsInternal) {
  Start();
  engine_.SetVerdict([](const PackedBatch& batch) -> absl::Status {
    if (batch.token_ids()[0] == 66) throw std::runtime_error("thrown");
    return absl::OkStatus();
  });
  Answer failed, next;
  Submit(66, {1}, failed);
  EXPECT_EQ(failed.WaitForCode(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.Wait().status().message()), HasSubstr("thrown"));
  Submit(1, {1}, next);
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(BatcherEndTest, DrainFinishesTheAdmittedAndRefusesTheRest) {
  Start();
  Answer running, queued, late;
  Occupy(running);
  Submit(1, {1}, queued);
  std::thread drain([this] { batcher_->Drain(absl::InfiniteFuture()); });
  while (true) {  // until the drain has begun
    Answer probe;
    const RequestId id = Submit(2, {1}, probe);
    if (id == 0) {
      EXPECT_EQ(probe.WaitForCode(), absl::StatusCode::kUnavailable);
      break;
    }
    batcher_->Cancel(id);
    probe.Wait();
  }
  EXPECT_FALSE(queued.done());
  engine_.Open();
  drain.join();
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_TRUE(queued.Wait().ok());
  Submit(3, {1}, late);
  EXPECT_EQ(late.WaitForCode(), absl::StatusCode::kUnavailable);
}

TEST_F(BatcherEndTest, DrainEndsWhatIsLeftAtItsDeadline) {
  Start();
  Answer running, queued;
  Occupy(running);
  Submit(1, {1}, queued);
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(5);
  batcher_->Drain(deadline);
  EXPECT_GE(SteadyNow(), deadline);
  EXPECT_EQ(running.WaitForCode(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(queued.WaitForCode(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(observer_.queue(), Pair(0, 0));
  engine_.Open();
}

TEST_F(BatcherEndTest, DrainDoesNotWaitForBatchesToFill) {
  BatcherOptions options = Options();
  options.max_queue_delay = absl::Hours(1);
  Start(options);
  Answer answer;
  Submit(1, {1}, answer);
  batcher_->Drain(absl::InfiniteFuture());
  EXPECT_TRUE(answer.Wait().ok());
}

TEST_F(BatcherEndTest, DrainOfAnIdleBatcherReturns) {
  Start(Options(), 2);
  batcher_->Drain(absl::InfiniteFuture());
  batcher_->Drain(absl::InfinitePast());
}

TEST_F(BatcherEndTest, EndGivesItsReasonToTheAdmittedAndToLaterOnes) {
  Start();
  Answer running, queued, late;
  Occupy(running);
  Submit(1, {1}, queued);
  const absl::Status why = absl::UnavailableError("the model was unloaded");
  batcher_->End(why);
  Submit(2, {1}, late);
  for (Answer* answer : {&running, &queued, &late}) EXPECT_EQ(answer->Wait().status(), why);
  engine_.Open();
}

TEST_F(BatcherEndTest, DestructionEndsTheQueuedAndFinishesTheRunning) {
  Start();
  Answer running, queued;
  Occupy(running);
  Submit(1, {1}, queued);
  std::thread destroy([this] { batcher_.reset(); });
  EXPECT_EQ(queued.WaitForCode(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(running.done());
  engine_.Open();
  destroy.join();
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_EQ(engine_.batches().size(), 1u);
}

// Starts so many threads, then no more.
class ScarceThreading final : public Threading {
 public:
  explicit ScarceThreading(int threads) : left_(threads) {}

  absl::Time Now() override { return System().Now(); }
  std::unique_ptr<Condition> MakeCondition() override { return System().MakeCondition(); }
  std::unique_ptr<Thread> Start(const std::string& name, absl::AnyInvocable<void()> body) override {
    if (left_-- == 0) throw std::system_error(EAGAIN, std::generic_category());
    return System().Start(name, std::move(body));
  }

 private:
  int left_;
};

TEST_F(BatcherEndTest, WithoutItsThreadsItEndsThoseThatRun) {
  for (int threads = 0; threads < 3; ++threads) {
    ScarceThreading threading(threads);
    std::vector<std::unique_ptr<Runner>> runners;
    for (int i = 0; i < 2; ++i) {
      runners.push_back(
          std::make_unique<BatchRunner>(std::make_unique<FakeSession>(engine_, Options())));
    }
    EXPECT_THROW(Batcher(Options(), std::move(runners), observer_, executor_.executor(), threading),
                 std::system_error);
  }
}

}  // namespace
}  // namespace attendant
