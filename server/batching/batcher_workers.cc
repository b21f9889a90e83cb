// SPDX-License-Identifier: Apache-2.0
// The threads of a batcher: what they wait for and what they do.
#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/check.h"
#include "server/batching/admission.h"
#include "server/batching/batcher_state.h"

namespace attendant {
namespace {

void NameThisThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

// Where the items of the request that `items[first]` belongs to end: a batch is a prefix of the
// queue, so a request's items are neighbours.
size_t EndOfRequest(std::span<const BatchItem> items, size_t first) {
  size_t end = first;
  while (end < items.size() && items[end].request == items[first].request) ++end;
  return end;
}

int64_t CountTokens(std::span<const BatchItem> items) {
  int64_t tokens = 0;
  for (const BatchItem& item : items) tokens += item.tokens();
  return tokens;
}

}  // namespace

void Batcher::State::Work(size_t index) {
  NameThisThread(absl::StrCat("batch-", index));
  runners_[index]->OnWorkerStart();
  std::vector<BatchItem> items;
  while (true) {
    Ended expired;
    items.clear();
    if (!NextBatch(items, expired)) return;
    Post(std::move(expired));
    if (items.empty()) continue;
    const absl::Time start = absl::Now();
    const absl::Status status = runners_[index]->Run(items);
    EndBatch(items, status, TimeSince(start, absl::Now()));
    if (absl::IsUnavailable(status)) return LoseRunner(status);
  }
}

bool Batcher::State::NextBatch(std::vector<BatchItem>& items, Ended& ended) {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    const absl::Time now = absl::Now();
    Expire(now, ended);
    QueueSnapshot snapshot = queue_.Snapshot();
    snapshot.draining = draining_;
    const BatchDecision decision = policy_.Decide(snapshot, now);
    if (decision.run) {
      queue_.TakeBatch(policy_, items);
      StartBatch(items, now);
      return true;
    }
    if (!ended.completions.empty()) return true;  // their owners must not wait for the next batch
    work_.WaitWithDeadline(&mutex_, decision.wait_until);
  }
  return false;
}

void Batcher::State::StartBatch(std::span<const BatchItem> items, absl::Time now) {
  ATTENDANT_CHECK(!items.empty());
  for (const BatchItem& item : items) {
    ++item.request->sequences_running;
    if (!item.request->queued) item.request->result.queue = TimeSince(item.request->arrival, now);
  }
  ReportQueue();
  // Admission wakes one worker for each request; what one batch leaves over is another worker's.
  if (queue_.requests() > 0) work_.Signal();
}

void Batcher::State::EndBatch(std::span<const BatchItem> items, const absl::Status& status,
                              absl::Duration compute) {
  const int64_t tokens = CountTokens(items);  // before what ends takes its operation along
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    int64_t requests = 0;
    for (size_t first = 0; first < items.size(); ++requests) {
      const size_t end = EndOfRequest(items, first);
      items[first].request->result.compute += compute;
      EndSequences(*items[first].request, static_cast<int64_t>(end - first), status, ended);
      first = end;
    }
    if (status.ok()) {
      LearnSpeed(compute / static_cast<double>(tokens));
      observer_.OnBatch(tokens, static_cast<int64_t>(items.size()), requests, compute);
    }
    ReportQueue();
  }
  Post(std::move(ended));
}

void Batcher::State::EndSequences(AdmittedRequest& request, int64_t sequences,
                                  const absl::Status& status, Ended& ended) {
  request.sequences_running -= sequences;
  if (request.completed) {
    if (request.sequences_running == 0) Release(request, ended);
  } else if (!status.ok()) {
    Complete(request, status, ended);
  } else if (!request.queued && request.sequences_running == 0) {
    request.result.operation = std::move(request.request.operation);
    Complete(request, std::move(request.result), ended);
  }
}

void Batcher::State::WatchDeadlines() {
  NameThisThread("batch-deadline");
  while (true) {
    Ended ended;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      watched_deadline_ = queue_.next_deadline();
      deadline_.WaitWithDeadline(&mutex_, watched_deadline_);
      Expire(absl::Now(), ended);
    }
    Post(std::move(ended));
  }
}

}  // namespace attendant
