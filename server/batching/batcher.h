// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/batching/admitted_request.h"
#include "server/batching/request.h"
#include "server/batching/runner.h"

namespace attendant {

struct BatcherOptions {
  int64_t max_batch_tokens = 0;  // also the longest sequence or operation that is admitted
  int64_t max_batch_sequences = 0;
  int64_t max_queued_tokens = 0;  // also the largest request that is admitted
  int64_t max_queued_requests = 0;
  absl::Duration max_queue_delay;  // how long a batch may wait to fill; zero never waits
};

enum class RejectReason { kQueueFull, kTooLarge, kDeadline, kCancelled, kDraining, kDeviceLost };
absl::string_view RejectReasonName(RejectReason reason);  // "queue_full", ...: a metric label

// What a batcher tells about itself. Called from its threads and from its callers', under its lock
// (so that the last OnQueueChanged is the truth): must neither block nor call the batcher.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  // A batch was computed; failed ones do not count. `requests`: how many different ones it served.
  virtual void OnBatch(int64_t tokens, int64_t sequences, int64_t requests,
                       absl::Duration compute) = 0;
  // A request was refused, or ended before it was computed.
  virtual void OnRejected(RejectReason reason) = 0;
  virtual void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) = 0;
};

// Runs a function soon, on a thread where it may take its time. Thread-safe.
using Executor = std::function<void(absl::AnyInvocable<void()>)>;

// Batches requests across callers by tokens (BatchPolicy says how) and runs them, one worker thread
// for each runner. A worker that is idle takes what is queued at once; requests queue only while
// all workers are busy, or for max_queue_delay. A request's sequences may go into several batches.
// A deadline counts until the last of them has entered one; one more thread ends what expires in
// the queue, on time. A batch that fails ends the requests in it with its status, and no others. A
// worker whose runner is lost takes no more; with the last of them gone, every request is refused.
// Thread-safe.
class Batcher {
 public:
  // Completions run on `executor`, never on a worker and never inside Submit. `observer` and
  // whatever `executor` uses must outlive the batcher. REQUIRES: at least one runner; every limit
  // is positive; requests are of the kind that the runners are for.
  Batcher(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
          BatchObserver& observer, Executor executor);
  // Drains without grace: what is queued completes with UNAVAILABLE, what runs finishes.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Admits or refuses; either way request.done is called exactly once. Returns 0 for a refused
  // request. A full queue says when to come back (RetryAfter in retry_hint.h).
  RequestId Submit(PendingRequest request);

  // Completes the request with CANCELLED if it has not completed; what has not entered a batch
  // never will. Unknown ids, 0 included, are ignored.
  void Cancel(RequestId id);

  // Refuses new requests with UNAVAILABLE from now on, waits until the admitted ones have completed
  // or `deadline` passes, and completes what is left with UNAVAILABLE.
  void Drain(absl::Time deadline);

  // `listener` is called once, with the reason, when no runner is left: from one of the batcher's
  // threads, or at once. Set once.
  using LostListener = absl::AnyInvocable<void(const absl::Status&)>;
  void SetLostListener(LostListener listener);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace attendant
