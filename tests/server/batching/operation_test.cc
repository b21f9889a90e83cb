// SPDX-License-Identifier: Apache-2.0
// Operations in a batcher: alone in their batch, and otherwise treated like any request.
#include "server/batching/runners/operation_runner.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <stdexcept>

#include "absl/time/clock.h"
#include "server/threads/steady_time.h"
#include "tests/server/batching/batcher_fixture.h"

namespace attendant {
namespace {

// What operations did, in the order in which they began.
struct Journal {
  absl::Mutex mutex;
  std::vector<int> started ABSL_GUARDED_BY(mutex);
  bool open ABSL_GUARDED_BY(mutex) = true;
  std::atomic<int> alive{0};
  std::atomic<int64_t> tasks{0};

  void Begin(int id) {
    absl::MutexLock lock(&mutex);
    started.push_back(id);
    mutex.Await(absl::Condition(&open));
  }
  void AwaitStarted(size_t count) {
    absl::MutexLock lock(&mutex);
    const auto reached = [&]()
                             ABSL_SHARED_LOCKS_REQUIRED(mutex) { return started.size() >= count; };
    mutex.Await(absl::Condition(&reached));
  }
  void SetOpen(bool value) {
    absl::MutexLock lock(&mutex);
    open = value;
  }
  std::vector<int> Started() {
    absl::MutexLock lock(&mutex);
    return started;
  }
};

class CountingOperation final : public Operation {
 public:
  CountingOperation(Journal& journal, int id, int64_t cost)
      : journal_(journal), id_(id), cost_(cost) {
    ++journal_.alive;
  }
  ~CountingOperation() override { --journal_.alive; }

  int64_t tokens() const override { return 3 * cost_; }
  int64_t cost() const override { return cost_; }
  absl::Status Run(ThreadPool& pool) override {
    journal_.Begin(id_);
    if (id_ == kFails) return absl::InternalError("as asked");
    if (id_ == kThrows) throw std::runtime_error("thrown");
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(cost_, [&](int64_t index, int) {
      sum += index;
      ++journal_.tasks;
    });
    sum_ = sum;
    return absl::OkStatus();
  }
  int64_t sum() const { return sum_; }

  static constexpr int kFails = 66;
  static constexpr int kThrows = 77;

 private:
  Journal& journal_;
  const int id_;
  const int64_t cost_;
  int64_t sum_ = -1;
};

class OperationTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::unique_ptr<Runner>> runners;
    runners.push_back(std::make_unique<OperationRunner>(2));
    const BatcherOptions options{.max_batch_tokens = 10,
                                 .max_batch_sequences = 1,
                                 .max_queued_tokens = 20,
                                 .max_queued_requests = 4,
                                 .max_queue_delay = absl::ZeroDuration()};
    batcher_ =
        std::make_unique<Batcher>(options, std::move(runners), observer_, executor_.executor());
  }
  void TearDown() override { journal_.SetOpen(true); }

  RequestId Submit(int id, int64_t cost, Answer& answer, int priority = 0,
                   absl::Time deadline = absl::InfiniteFuture()) {
    WorkRequest request;
    request.work = std::make_unique<CountingOperation>(journal_, id, cost);
    request.priority = priority;
    request.deadline = deadline;
    request.done = answer.Callback();
    request.client = static_cast<uint64_t>(id);
    return batcher_->Submit(std::move(request));
  }

  Journal journal_;
  RecordingObserver observer_;
  ThreadExecutor executor_;
  std::unique_ptr<Batcher> batcher_;
};

TEST_F(OperationTest, ComesBackWithItsResult) {
  Answer answer;
  Submit(1, 10, answer);
  ASSERT_TRUE(answer.Wait().ok()) << answer.Wait().status();
  const Operation& operation = *std::get<std::unique_ptr<Operation>>(answer.Wait()->work);
  EXPECT_EQ(dynamic_cast<const CountingOperation&>(operation).sum(), 45);
  EXPECT_EQ(answer.thread(), executor_.thread_id());
  batcher_.reset();
  EXPECT_EQ(observer_.batches(), (std::vector<ObservedBatch>{{30, 1, 1}}));
}

// Counts how nice the threads are that run its tasks; each waits until all have one.
class NiceOperation final : public Operation {
 public:
  explicit NiceOperation(int threads) : threads_(threads) {}
  int64_t tokens() const override { return 1; }
  int64_t cost() const override { return 1; }
  absl::Status Run(ThreadPool& pool) override {
    pool.ParallelFor(threads_, [this](int64_t index, int) {
      nice_[static_cast<size_t>(index)] = getpriority(PRIO_PROCESS, 0);
      ++running_;
      while (running_ < threads_) std::this_thread::yield();
    });
    return absl::OkStatus();
  }
  const std::array<int, 2>& nice() const { return nice_; }

 private:
  const int threads_;
  std::atomic<int> running_{0};
  std::array<int, 2> nice_{};
};

TEST(OperationRunnerTest, ItsThreadsGiveWayToOthers) {
  const int own = getpriority(PRIO_PROCESS, 0);
  if (own > 10) GTEST_SKIP() << "this process is nice already";
  OperationRunner runner(2, /*nice=*/9);
  QueuedRequest request;
  request.work = std::make_unique<NiceOperation>(2);
  const BatchItem item{.request = &request};
  std::thread worker([&] {
    runner.OnWorkerStart();
    EXPECT_TRUE(runner.Run({&item, 1}).ok());
  });
  worker.join();
  const auto& operation = dynamic_cast<const NiceOperation&>(request.operation());
  EXPECT_EQ(operation.nice(), (std::array<int, 2>{own + 9, own + 9}));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own) << "of this thread";
}

TEST_F(OperationTest, LeavesOutItsTasksOnceItIsCancelled) {
  journal_.SetOpen(false);
  Answer cancelled, next;
  const RequestId id = Submit(1, 10, cancelled);
  journal_.AwaitStarted(1);
  Submit(2, 7, next);
  batcher_->Cancel(id);
  EXPECT_EQ(cancelled.WaitForCode(), absl::StatusCode::kCancelled);
  journal_.SetOpen(true);
  ASSERT_TRUE(next.Wait().ok()) << next.Wait().status();
  EXPECT_EQ(journal_.tasks, 7) << "all of the second operation, none of the first";
  batcher_.reset();
  EXPECT_EQ(observer_.batches(), (std::vector<ObservedBatch>{{21, 1, 1}}));
}

TEST_F(OperationTest, RunsAloneByPriorityAndArrival) {
  journal_.SetOpen(false);
  Answer answers[4];
  Submit(0, 1, answers[0]);
  journal_.AwaitStarted(1);
  Submit(1, 2, answers[1]);
  Submit(2, 2, answers[2]);
  Submit(3, 2, answers[3], /*priority=*/1);
  EXPECT_EQ(observer_.queue(), (std::pair<int64_t, int64_t>{6, 3}));
  journal_.SetOpen(true);
  for (Answer& answer : answers) EXPECT_EQ(answer.WaitForCode(), absl::StatusCode::kOk);
  EXPECT_EQ(journal_.Started(), (std::vector<int>{0, 3, 1, 2}));
  batcher_.reset();
  EXPECT_EQ(observer_.batches(),
            (std::vector<ObservedBatch>{{3, 1, 1}, {6, 1, 1}, {6, 1, 1}, {6, 1, 1}}));
}

TEST_F(OperationTest, TooLargeOrTooManyAreRefused) {
  Answer too_large;
  EXPECT_EQ(Submit(1, 11, too_large), 0u);
  EXPECT_EQ(too_large.Wait().status(),
            absl::InvalidArgumentError("the request has 11 tokens, the limit is 10"));
  journal_.SetOpen(false);
  Answer running;
  Answer first;
  Answer second;
  Answer third;
  Submit(1, 1, running);
  journal_.AwaitStarted(1);
  Submit(2, 10, first);
  Submit(3, 10, second);
  Submit(4, 1, third);
  EXPECT_EQ(third.WaitForCode(), absl::StatusCode::kResourceExhausted);
  journal_.SetOpen(true);
  EXPECT_EQ(second.WaitForCode(), absl::StatusCode::kOk);
}

TEST_F(OperationTest, FailuresEndTheirOwnRequestOnly) {
  Answer fails;
  Answer throws;
  Answer works;
  Submit(CountingOperation::kFails, 3, fails);
  Submit(CountingOperation::kThrows, 3, throws);
  Submit(1, 3, works);
  EXPECT_EQ(fails.Wait().status(), absl::InternalError("as asked"));
  EXPECT_EQ(throws.Wait().status(), absl::InternalError("an operation failed: thrown"));
  EXPECT_EQ(works.WaitForCode(), absl::StatusCode::kOk);
}

TEST_F(OperationTest, IsKeptWhileItRunsAndFreedWhenItNeverWill) {
  journal_.SetOpen(false);
  Answer running;
  Answer cancelled;
  Answer late;
  const RequestId first = Submit(1, 2, running);
  journal_.AwaitStarted(1);
  const RequestId second = Submit(2, 2, cancelled);
  Submit(3, 2, late, 0, SteadyNow() + absl::Milliseconds(1));
  batcher_->Cancel(first);
  batcher_->Cancel(second);
  EXPECT_EQ(running.WaitForCode(), absl::StatusCode::kCancelled);
  EXPECT_EQ(cancelled.WaitForCode(), absl::StatusCode::kCancelled);
  EXPECT_EQ(late.WaitForCode(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(journal_.alive, 1);  // the one that runs
  journal_.SetOpen(true);
  batcher_.reset();
  EXPECT_EQ(journal_.Started(), (std::vector<int>{1}));
  EXPECT_EQ(journal_.alive, 0);
}

}  // namespace
}  // namespace attendant
