// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/batch_policy.h"
#include "server/batching/compute_slot.h"
#include "server/batching/cost_model.h"
#include "server/batching/forecast.h"
#include "server/batching/queued_request.h"
#include "server/batching/request_queue.h"
#include "server/batching/runners/runner.h"
#include "server/batching/running_batches.h"
#include "server/threads/executor.h"
#include "server/threads/threading.h"

namespace attendant {

struct BatcherOptions {
  int64_t max_batch_tokens = 0;  // also the longest sequence or operation that is admitted
  int64_t max_batch_sequences = 0;
  int64_t max_queued_tokens = 0;  // also the largest request that is admitted
  int64_t max_queued_requests = 0;
  absl::Duration max_queue_delay;  // how long a batch may wait to fill; zero never waits
  int max_priority = std::numeric_limits<int>::max();  // a request with a higher one gets this
  // The longest time that a request without progress waits for higher priorities, see RequestQueue.
  absl::Duration max_priority_wait = absl::InfiniteDuration();
  // The longest time of a batch: a worker whose batch takes longer counts as stalled.
  absl::Duration stall_timeout = absl::InfiniteDuration();
  CostModel cost{};  // without a fit, no deadline counts as infeasible
  // Empty, or [runners]: the processors of each, and this batcher's share of them.
  std::vector<std::shared_ptr<ComputeSlot>> slots{};
  double weight = 1;
};

enum class RejectReason {
  kQueueFull,
  kTooLarge,
  kDeadline,
  kCancelled,
  kDraining,
  kDeviceLost,
  kInfeasible,  // the deadline is too near
  kEnd,         // no reason
};
absl::string_view RejectReasonName(RejectReason reason);  // "queue_full", ...: a metric label

// Hears of a batcher's events. Called from the batcher's threads and its callers', under its lock,
// so that the last OnQueueChanged is true. It must neither block nor call the batcher.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  // A batch of so many tokens was computed; failed and abandoned ones do not count. It served
  // `requests` different requests.
  virtual void OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
                       absl::Duration compute) = 0;
  virtual void OnRejected(RejectReason reason) = 0;  // of a request, or its end before its results
  // The work that waits now. For operations, `queued_tokens` is the sum of their costs.
  virtual void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) = 0;
  virtual void OnStalled(int workers) = 0;  // that run a batch for longer than stall_timeout
  virtual void OnLost(int workers) = 0;     // that have lost their runners
};

// Batches requests across callers by tokens (BatchPolicy and RequestQueue say how) and runs the
// batches, one worker thread for each runner. An idle worker takes a batch at once; requests wait
// only while all workers are busy, or for max_queue_delay. A request's sequences may go into
// several batches.
//
// A request whose deadline cannot be met is refused at once (AnswerTime says when). One more thread
// ends the others at their deadlines, queued or in batches, and finds stalled workers. A batch is
// abandoned, and its runner told to stop, when all its requests have ended while it runs. Times are
// the steady clock's. A batch that fails ends its own requests with its status, and no others. A
// worker whose runner is lost takes no more batches; after the last one every request is refused.
//
// Batchers may share processors (ComputeSlot): then a worker waits for its turn before it takes a
// batch, and the queue goes on filling.
//
// One lock guards the queue and the table of requests; workers and the watching thread wait on it.
// A request ends under the lock, exactly once (Complete); its completion goes to the executor after
// the lock is released (Post). Thread-safe.
class Batcher {
 public:
  // Completions run on `executor`, never on a worker and never inside Submit. `observer`, what
  // `executor` uses and `threading` outlive the batcher. Throws when a thread is refused. REQUIRES:
  // at least one runner; every limit is positive; requests are of the kind that the runners take.
  Batcher(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
          BatchObserver& observer, Executor executor, Threading& threading = Threading::System());
  // Drains without grace: queued requests complete with UNAVAILABLE, running batches finish.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  const BatcherOptions& options() const { return options_; }

  // Admits or refuses; either way work.done is called exactly once. Returns 0 for a refused
  // request, and for one without sequences, which is admitted and ends at once. A full queue says
  // when to come back (RetryAfter in server/retry).
  RequestId Submit(WorkRequest work);

  // Completes the request with CANCELLED if it has not completed, or with DEADLINE_EXCEEDED
  // (EndsByDeadline); its queued sequences never enter a batch. Unknown ids, 0 included, are
  // ignored.
  void Cancel(RequestId id);

  // Refuses new requests with UNAVAILABLE from now on, waits until the admitted ones have completed
  // or `deadline`, a steady time, passes, and completes the others with UNAVAILABLE.
  void Drain(absl::Time deadline);

  // Refuses new requests with `why`, which is not OK, from now on, and completes the admitted ones
  // with it.
  void End(const absl::Status& why);

  // `listener` is called once, with the reason, when no runner is left: from one of the batcher's
  // threads, or at once. Set once.
  using LostListener = absl::AnyInvocable<void(const absl::Status&)>;
  void SetLostListener(LostListener listener);

  // `listener` hears each new number of stalled workers, on one of the batcher's threads. Set once.
  using StallListener = absl::AnyInvocable<void(int workers)>;
  void SetStallListener(StallListener listener);

 private:
  struct Completion {
    absl::AnyInvocable<void(absl::StatusOr<FinishedWork>)> done;
    absl::StatusOr<FinishedWork> finished;
  };
  // Work without the lock, after requests have ended: to tell their owners, and to free them.
  struct Ended {
    std::vector<Completion> completions;
    std::vector<std::unique_ptr<QueuedRequest>> requests;
  };
  struct Refusal {
    RejectReason reason;
    absl::Status status;
  };

  static absl::Status Draining();
  static Refusal Stopped();
  void CloseWith(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void StartThreads();
  void Stop();
  void Work(size_t index);
  void Watch();
  // Waits for a batch. False: stop.
  bool AwaitBatch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a batch in its turn and runs it. Returns how it went; OK without one.
  absl::Status RunBatch(size_t worker, std::vector<BatchItem>& items) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends what cannot be answered in time, then takes a batch if the policy still says so: another
  // worker may have been there first.
  void TakeBatch(size_t worker, std::vector<BatchItem>& items, Ended& ended)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeAnother() ABSL_LOCKS_EXCLUDED(mutex_);
  BatchDecision Decide(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndBatch(size_t worker, std::span<const BatchItem> items, const absl::Status& status,
                absl::Time start) ABSL_LOCKS_EXCLUDED(mutex_);
  void LoseRunner(size_t worker, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void NotifyLost() ABSL_LOCKS_EXCLUDED(mutex_);
  void Post(Ended ended) ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<Refusal> Admit(std::unique_ptr<QueuedRequest>& request, const absl::Status& size,
                               RequestId& id, Ended& ended) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Refusal> FindRefusal(const QueuedRequest& request, const absl::Status& size,
                                     Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartBatch(size_t worker, std::span<const BatchItem> items, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSequences(QueuedRequest& request, int64_t sequences, const absl::Status& status,
                    Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the requests that have expired, and those in the queue with less than `needed` left.
  void Expire(absl::Time now, absl::Duration needed, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RejectLate(QueuedRequest& request, absl::Time now, Ended& ended)  // by its deadline
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reject(QueuedRequest& request, RejectReason reason, absl::Status status, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK: its results are there. REQUIRES: then none of its sequences is running.
  void Complete(QueuedRequest& request, absl::Status status, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<QueuedRequest> Release(QueuedRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RejectAll(const Refusal& refusal, bool running_too, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time FindStalled(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // the next time
  absl::Duration TimeToAnswer(const QueuedRequest& request) const  // from its arrival on
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BatchShape Queued() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BatcherOptions options_;
  const BatchPolicy policy_;
  const std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<std::unique_ptr<ComputeSlot::User>> turns_;  // [runners]; null: no slot
  BatchObserver& observer_;
  const Executor executor_;
  Threading& threading_;

  using Condition = std::unique_ptr<Threading::Condition>;
  absl::Mutex mutex_;
  const Condition work_;           // something to take, or stopping: for workers
  const Condition watch_;          // something to do before watched_until_, or stopping
  const Condition all_completed_;  // open_requests_ fell to 0
  RequestQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<RequestId, std::unique_ptr<QueuedRequest>> requests_ ABSL_GUARDED_BY(mutex_);
  // Of the requests that are in batches with all their sequences.
  absl::btree_set<std::pair<absl::Time, RequestId>> running_deadlines_ ABSL_GUARDED_BY(mutex_);
  RequestId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t open_requests_ ABSL_GUARDED_BY(mutex_) = 0;  // submitted, completion not handed over
  Forecast forecast_ ABSL_GUARDED_BY(mutex_);
  RunningBatches running_ ABSL_GUARDED_BY(mutex_);
  absl::Time watched_until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // watch_ wakes then
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // not OK: refuses new requests with it
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);  // not OK: why no runner is left
  LostListener lost_listener_ ABSL_GUARDED_BY(mutex_);
  StallListener stall_listener_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::unique_ptr<Threading::Thread>> threads_;  // last: they use all of the above
};

}  // namespace attendant
