// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "kernels/core/check.h"
#include "server/batching/batcher.h"
#include "server/batching/runners/batch_runner.h"

namespace attendant {

// Controls fake sessions and records their runs. Thread-safe.
//
// A fake session's answer depends on the sequence alone, hidden = 2: token t's state is
// (token_ids[t], positions[t]), the pooled vector is (sum of token_ids, len).
class FakeEngine {
 public:
  // Batches stop in Run until Open.
  void Close() {
    absl::MutexLock lock(&mutex_);
    open_ = false;
  }
  void Open() {
    absl::MutexLock lock(&mutex_);
    open_ = true;
  }
  // Returns when `batches` of them are inside Run or have been.
  void AwaitStarted(size_t batches) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [this, batches]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return batches_.size() >= batches;
    };
    mutex_.Await(absl::Condition(&reached));
  }
  // The first token id of every sequence of every batch, in the order in which they started.
  std::vector<std::vector<int32_t>> batches() {
    absl::MutexLock lock(&mutex_);
    return batches_;
  }
  // Called for each batch, after the gate; its status is what Run returns.
  void SetVerdict(std::function<absl::Status(const PackedBatch&)> verdict) {
    absl::MutexLock lock(&mutex_);
    verdict_ = std::move(verdict);
  }

  // Whether a session is told that nobody waits for its batch.
  bool abandoned() {
    absl::MutexLock lock(&mutex_);
    return std::any_of(stops_.begin(), stops_.end(), [](const auto* stop) { return stop->load(); });
  }
  void AddStop(const std::atomic<bool>* stop) {
    absl::MutexLock lock(&mutex_);
    stops_.push_back(stop);
  }

  absl::Status Enter(const PackedBatch& batch) {
    std::function<absl::Status(const PackedBatch&)> verdict;
    {
      absl::MutexLock lock(&mutex_);
      std::vector<int32_t>& first_ids = batches_.emplace_back();
      for (int64_t i = 0; i < batch.batch(); ++i) {
        first_ids.push_back(batch.token_ids()[static_cast<size_t>(batch.seq_start(i))]);
      }
      mutex_.Await(absl::Condition(&open_));
      verdict = verdict_;
    }
    return verdict ? verdict(batch) : absl::OkStatus();
  }

 private:
  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::vector<int32_t>> batches_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status(const PackedBatch&)> verdict_ ABSL_GUARDED_BY(mutex_);
  std::vector<const std::atomic<bool>*> stops_ ABSL_GUARDED_BY(mutex_);  // of the sessions
};

class FakeSession final : public Session {
 public:
  FakeSession(FakeEngine& engine, const BatcherOptions& limits)
      : engine_(engine), limits_(limits) {}

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override {
    EXPECT_GT(batch.batch(), 0);
    EXPECT_LE(batch.tokens(), limits_.max_batch_tokens);
    EXPECT_LE(batch.batch(), limits_.max_batch_sequences);
    EXPECT_EQ(static_cast<int64_t>(spec.sequences.size()), batch.batch());
    if (absl::Status status = engine_.Enter(batch); !status.ok()) return status;
    Compute(batch);
    outputs.last_hidden_state = {states_.data(), {batch.tokens(), 2}};
    outputs.pooled = {pooled_.data(), {batch.batch(), 2}};
    return absl::OkStatus();
  }

  void StopWhen(const std::atomic<bool>* stop) override { engine_.AddStop(stop); }

 private:
  void Compute(const PackedBatch& batch) {
    states_.clear();
    pooled_.assign(static_cast<size_t>(2 * batch.batch()), 0);
    for (int64_t i = 0; i < batch.batch(); ++i) {
      float* pooled = &pooled_[static_cast<size_t>(2 * i)];
      for (int64_t t = batch.seq_start(i); t < batch.seq_start(i + 1); ++t) {
        const size_t token = static_cast<size_t>(t);
        states_.push_back(static_cast<float>(batch.token_ids()[token]));
        states_.push_back(static_cast<float>(batch.positions()[token]));
        pooled[0] += static_cast<float>(batch.token_ids()[token]);
        pooled[1] += 1;
      }
    }
  }

  FakeEngine& engine_;
  const BatcherOptions limits_;
  std::vector<float> states_;  // [tokens, 2]
  std::vector<float> pooled_;  // [batch, 2]
};

// One thread that runs what it is given in order; its destructor runs the rest.
class ThreadExecutor {
 public:
  ThreadExecutor() : thread_([this] { Loop(); }) {}
  ~ThreadExecutor() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

  Executor executor() {
    return [this](absl::AnyInvocable<void()> task) {
      absl::MutexLock lock(&mutex_);
      tasks_.push_back(std::move(task));
    };
  }
  std::thread::id thread_id() const { return thread_.get_id(); }

 private:
  void Loop() {
    while (true) {
      absl::AnyInvocable<void()> task;
      {
        absl::MutexLock lock(&mutex_);
        const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return stopping_ || !tasks_.empty();
        };
        mutex_.Await(absl::Condition(&ready));
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

struct ObservedBatch {
  int64_t tokens, sequences, requests;
  friend bool operator==(const ObservedBatch&, const ObservedBatch&) = default;
};

class RecordingObserver final : public BatchObserver {
 public:
  void OnBatch(int64_t tokens, int64_t sequences, int64_t requests, absl::Duration) override {
    absl::MutexLock lock(&mutex_);
    batches_.push_back({tokens, sequences, requests});
  }
  void OnRejected(RejectReason reason) override {
    absl::MutexLock lock(&mutex_);
    rejected_.push_back(reason);
  }
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override {
    absl::MutexLock lock(&mutex_);
    queue_ = {queued_tokens, queued_requests};
  }

  void OnStalled(int workers) override {
    absl::MutexLock lock(&mutex_);
    stalled_.push_back(workers);
  }
  void OnLost(int workers) override {
    absl::MutexLock lock(&mutex_);
    lost_.push_back(workers);
  }

  std::vector<ObservedBatch> batches() {
    absl::MutexLock lock(&mutex_);
    return batches_;
  }
  std::vector<int> stalled() {  // every report
    absl::MutexLock lock(&mutex_);
    return stalled_;
  }
  std::vector<int> lost() {  // every report
    absl::MutexLock lock(&mutex_);
    return lost_;
  }
  std::vector<RejectReason> rejected() {
    absl::MutexLock lock(&mutex_);
    return rejected_;
  }
  std::pair<int64_t, int64_t> queue() {  // tokens, requests
    absl::MutexLock lock(&mutex_);
    return queue_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<ObservedBatch> batches_ ABSL_GUARDED_BY(mutex_);
  std::vector<RejectReason> rejected_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> stalled_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> lost_ ABSL_GUARDED_BY(mutex_);
  std::pair<int64_t, int64_t> queue_ ABSL_GUARDED_BY(mutex_);
};

// The end of one request.
class Answer {
 public:
  absl::AnyInvocable<void(absl::StatusOr<FinishedWork>)> Callback() {
    return [this](absl::StatusOr<FinishedWork> finished) {
      ASSERT_FALSE(done_.HasBeenNotified()) << "completed twice";
      thread_ = std::this_thread::get_id();
      finished_ = std::move(finished);
      done_.Notify();
    };
  }
  // Ends the program, and says why, where no answer comes.
  const absl::StatusOr<FinishedWork>& Wait() {
    ATTENDANT_CHECK(done_.WaitForNotificationWithTimeout(absl::Minutes(1)) && "no answer came");
    return *finished_;
  }
  // REQUIRES: it has them.
  const std::vector<SequenceResult>& Results() {
    return std::get<EncodeWork>(Wait()->work).results;
  }
  absl::StatusCode WaitForCode() { return Wait().status().code(); }
  bool done() const { return done_.HasBeenNotified(); }
  std::thread::id thread() const { return thread_; }

 private:
  absl::Notification done_;
  std::thread::id thread_;
  std::optional<absl::StatusOr<FinishedWork>> finished_;
};

class BatcherTest : public testing::Test {
 protected:
  void TearDown() override { engine_.Open(); }  // so that a failed test ends

  // Budget 10 tokens and 4 sequences a batch, 100 tokens and 8 requests queued.
  static BatcherOptions Options() {
    return {.max_batch_tokens = 10,
            .max_batch_sequences = 4,
            .max_queued_tokens = 100,
            .max_queued_requests = 8,
            .max_queue_delay = absl::ZeroDuration()};
  }

  void Start(const BatcherOptions& options = Options(), int workers = 1) {
    std::vector<std::unique_ptr<Runner>> runners;
    for (int i = 0; i < workers; ++i) {
      runners.push_back(
          std::make_unique<BatchRunner>(std::make_unique<FakeSession>(engine_, options)));
    }
    batcher_ =
        std::make_unique<Batcher>(options, std::move(runners), observer_, executor_.executor());
  }

  // A request of client first_id, whose sequence i has lens[i] tokens id, id + 1, ..., with
  // id = first_id + 100 * i.
  static WorkRequest Request(int32_t first_id, const std::vector<int>& lens, Answer& answer) {
    WorkRequest request;
    request.client = static_cast<uint64_t>(first_id);
    for (size_t i = 0; i < lens.size(); ++i) {
      SequenceInput& sequence = request.encode().sequences.emplace_back();
      for (int32_t t = 0; t < lens[i]; ++t) {
        sequence.token_ids.push_back(first_id + 100 * static_cast<int32_t>(i) + t);
        sequence.positions.push_back(t);
        sequence.segment_ids.push_back(0);
      }
    }
    request.encode().outputs.pooling = Pooling::kMean;
    request.done = answer.Callback();
    return request;
  }

  RequestId Submit(int32_t first_id, const std::vector<int>& lens, Answer& answer) {
    return batcher_->Submit(Request(first_id, lens, answer));
  }

  // Fills every worker with a batch that stays in the engine until engine_.Open().
  void Occupy(Answer& answer) {
    engine_.Close();
    Submit(0, {1}, answer);
    engine_.AwaitStarted(1);
  }

  // What the engine ran after the batch that Occupy made.
  std::vector<std::vector<int32_t>> LaterBatches() {
    std::vector<std::vector<int32_t>> batches = engine_.batches();
    batches.erase(batches.begin());
    return batches;
  }

  FakeEngine engine_;
  RecordingObserver observer_;
  ThreadExecutor executor_;
  std::unique_ptr<Batcher> batcher_;
};

}  // namespace attendant
