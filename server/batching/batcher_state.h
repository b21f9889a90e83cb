// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/admitted_request.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batcher.h"
#include "server/batching/request_queue.h"
#include "server/batching/runner.h"

namespace attendant {

// The inside of a Batcher: one lock over the queue and the table of requests; workers and the
// deadline thread wait on it. Whatever ends a request does so under the lock, exactly once
// (Complete), and hands the completion to the executor after the lock is released (Post).
class Batcher::State {
 public:
  State(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
        BatchObserver& observer, Executor executor);
  ~State();

  RequestId Submit(PendingRequest request);
  void Cancel(RequestId id);
  void Drain(absl::Time deadline);
  void SetLostListener(LostListener listener);

 private:
  struct Completion {
    absl::AnyInvocable<void(absl::StatusOr<RequestResult>)> done;
    absl::StatusOr<RequestResult> result;
  };
  // What is left to do, without the lock, after requests have ended: tell their owners, free them.
  struct Ended {
    std::vector<Completion> completions;
    std::vector<std::unique_ptr<AdmittedRequest>> requests;
  };
  struct Refusal {
    RejectReason reason;
    absl::Status status;
  };

  static Refusal Stopped();

  // Threads.
  void Work(size_t index);
  void WatchDeadlines();

  // Waits for a batch. False: stop. It may return true with no items; ask again.
  bool NextBatch(std::vector<BatchItem>& items, Ended& ended) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndBatch(std::span<const BatchItem> items, const absl::Status& status,
                absl::Duration compute) ABSL_LOCKS_EXCLUDED(mutex_);
  void LoseRunner(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void TellLost() ABSL_LOCKS_EXCLUDED(mutex_);
  void Post(Ended ended) ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<Refusal> Admit(std::unique_ptr<AdmittedRequest>& request, const absl::Status& size,
                               RequestId& id, Ended& ended) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Refusal> FindRefusal(const AdmittedRequest& request, const absl::Status& size,
                                     Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartBatch(std::span<const BatchItem> items, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSequences(AdmittedRequest& request, int64_t sequences, const absl::Status& status,
                    Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Expire(absl::Time now, Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reject(AdmittedRequest& request, RejectReason reason, absl::Status status, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complete(AdmittedRequest& request, absl::StatusOr<RequestResult> result, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(AdmittedRequest& request, Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RejectAll(const Refusal& refusal, bool running_too, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LearnSpeed(absl::Duration time_per_token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration RetryDelay() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BatcherOptions options_;
  const BatchPolicy policy_;
  const std::vector<std::unique_ptr<Runner>> runners_;
  BatchObserver& observer_;
  const Executor executor_;

  absl::Mutex mutex_;
  absl::CondVar work_;           // something to take, or stopping: for workers
  absl::CondVar deadline_;       // an earlier deadline, or stopping: for the deadline thread
  absl::CondVar all_completed_;  // open_requests_ fell to 0
  RequestQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<RequestId, std::unique_ptr<AdmittedRequest>> requests_
      ABSL_GUARDED_BY(mutex_);
  RequestId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t open_requests_ ABSL_GUARDED_BY(mutex_) = 0;  // admitted, completion not yet handed over
  absl::Time watched_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Duration time_per_token_ ABSL_GUARDED_BY(mutex_);  // moving average; zero: not yet known
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t runners_left_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);  // not OK: why no runner is left
  LostListener lost_listener_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace attendant
