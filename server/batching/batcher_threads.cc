// SPDX-License-Identifier: Apache-2.0
// The threads of a batcher: the workers, and the one that watches deadlines and workers.
#include <algorithm>
#include <utility>

#include "kernels/core/check.h"
#include "server/batching/batcher.h"

namespace attendant {
namespace {

// The items' requests, those of one request next to each other.
std::vector<QueuedRequest*> RequestsOf(std::span<const BatchItem> items) {
  std::vector<QueuedRequest*> requests;
  for (const BatchItem& item : items) requests.push_back(item.request);
  std::sort(requests.begin(), requests.end(),
            [](const QueuedRequest* a, const QueuedRequest* b) { return a->id < b->id; });
  return requests;
}

int64_t ComputedTokens(std::span<const BatchItem> items) {
  int64_t tokens = 0;
  for (const BatchItem& item : items) tokens += item.computed_tokens();
  return tokens;
}

// REQUIRES: those of one request are next to each other.
int64_t CountRequests(std::span<QueuedRequest* const> members) {
  int64_t requests = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    requests += i == 0 || members[i] != members[i - 1] ? 1 : 0;
  }
  return requests;
}

// Notes a batch for its traced requests. The first of them gives it an id: its own
// number and how many batches it had, so that no other batch has the same.
void TellOfBatch(TracedBatch batch, std::span<QueuedRequest* const> members) {
  bool known = false;
  const QueuedRequest* last = nullptr;
  for (QueuedRequest* request : members) {
    if (request == std::exchange(last, request)) continue;
    if (request->completed || request->batches == nullptr) continue;
    std::vector<TracedBatch>& batches = *request->batches;
    if (batches.size() == kMaxTracedBatches) continue;
    if (!known) batch.id = request->trace + batches.size();
    batches.push_back(batch);
    batches.back().told = !std::exchange(known, true);
  }
}

BatchShape ShapeOf(std::span<const BatchItem> items) {
  BatchShape shape;
  for (const BatchItem& item : items) shape.Add(item.tokens(), item.head_ns());
  return shape;
}

}  // namespace

void Batcher::Work(size_t index) {
  runners_[index]->OnWorkerStart();
  std::vector<BatchItem> items;
  while (AwaitBatch()) {
    const absl::Status status = RunBatch(index, items);
    if (absl::IsUnavailable(status)) return LoseRunner(index, status);
  }
}

absl::Status Batcher::RunBatch(size_t index, std::vector<BatchItem>& items) {
  const ComputeSlot::Turn turn(turns_[index].get(), [this] { WakeAnother(); });
  Ended expired;
  items.clear();
  TakeBatch(index, items, expired);
  Post(std::move(expired));
  if (items.empty()) return absl::OkStatus();
  const absl::Time start = threading_.Now();
  const absl::Status status = runners_[index]->Run(items);
  EndBatch(index, items, status, start);
  return status;
}

bool Batcher::AwaitBatch() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    const BatchDecision decision = Decide(threading_.Now());
    if (decision.run) return true;
    work_->WaitUntil(mutex_, decision.wait_until);
  }
  return false;
}

void Batcher::TakeBatch(size_t index, std::vector<BatchItem>& items, Ended& ended) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  const absl::Time now = threading_.Now();
  Expire(now, TimeNeeded(Queued(), forecast_.capacity()), ended);
  if (!Decide(now).run) return;
  queue_.TakeBatch(now, items);
  StartBatch(index, items, now);
}

// This worker waits for its processors; those of another may be free.
void Batcher::WakeAnother() {
  absl::MutexLock lock(&mutex_);
  work_->Signal();
}

BatchDecision Batcher::Decide(absl::Time now) const {
  QueueSnapshot snapshot = queue_.Snapshot();
  snapshot.draining = !closed_.ok();
  return policy_.Decide(snapshot, now);
}

void Batcher::StartBatch(size_t index, std::span<const BatchItem> items, absl::Time now) {
  ATTENDANT_CHECK(!items.empty());
  for (const BatchItem& item : items) {
    ++item.request->sequences_running;
    if (item.request->queued) continue;
    item.request->queue = now - item.request->arrival;
    running_deadlines_.emplace(item.request->deadline, item.request->id);
  }
  const absl::Time stalls_at = now + options_.stall_timeout;
  running_.Begin(index, items, stalls_at);
  forecast_.Begin(index, ShapeOf(items), now);
  if (stalls_at < watched_until_) watch_->Signal();
  ReportQueue();
  // Admission wakes one worker for each request: wake another one for the rest of the queue.
  if (queue_.requests() > 0) work_->Signal();
}

void Batcher::EndBatch(size_t index, std::span<const BatchItem> items, const absl::Status& status,
                       absl::Time start) {
  const absl::Duration compute = threading_.Now() - start;
  // Before a request that ends takes its work along.
  const BatchShape shape = ShapeOf(items);
  const int64_t tokens = ComputedTokens(items);
  const std::vector<QueuedRequest*> members = RequestsOf(items);
  const TracedBatch traced{.worker = static_cast<int64_t>(index),
                           .tokens = tokens,
                           .sequences = shape.sequences,
                           .requests = CountRequests(members),
                           .start = start,
                           .compute = compute};
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    if (running_.stalled(index)) watch_->Signal();
    running_.End(index);
    forecast_.End(index);
    if (status.ok()) TellOfBatch(traced, members);
    for (size_t first = 0; first < members.size();) {
      size_t end = first;
      while (end < members.size() && members[end] == members[first]) ++end;
      members[first]->compute += compute;
      EndSequences(*members[first], static_cast<int64_t>(end - first), status, ended);
      first = end;
    }
    if (status.ok() && !*running_.abandoned(index)) {
      forecast_.Observe(shape, compute);
      observer_.OnBatch(tokens, shape.sequences, traced.requests, compute);
    }
    ReportQueue();
  }
  Post(std::move(ended));
}

void Batcher::EndSequences(QueuedRequest& request, int64_t sequences, const absl::Status& status,
                           Ended& ended) {
  request.sequences_running -= sequences;
  if (request.completed) {
    if (request.sequences_running == 0) ended.requests.push_back(Release(request));
  } else if (!status.ok()) {
    Complete(request, status, ended);
  } else if (!request.queued && request.sequences_running == 0) {
    Complete(request, absl::OkStatus(), ended);
  }
}

absl::Time Batcher::FindStalled(absl::Time now) {
  const int before = running_.stalled();
  const absl::Time next = running_.FindStalled(now);
  if (running_.stalled() != before) observer_.OnStalled(running_.stalled());
  return next;
}

void Batcher::Watch() {
  int told = 0;  // stalled workers, as the listener knows
  while (true) {
    Ended ended;
    StallListener* tell = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      const absl::Time now = threading_.Now();
      Expire(now, absl::ZeroDuration(), ended);
      watched_until_ = std::min(FindStalled(now), queue_.next_deadline());
      if (!running_deadlines_.empty()) {
        watched_until_ = std::min(watched_until_, running_deadlines_.begin()->first);
      }
      if (running_.stalled() != told && stall_listener_) tell = &stall_listener_;
      if (tell != nullptr) {
        told = running_.stalled();
      } else if (ended.completions.empty()) {
        watch_->WaitUntil(mutex_, watched_until_);
      }
    }
    Post(std::move(ended));
    if (tell != nullptr) (*tell)(told);  // it is set once
  }
}

}  // namespace attendant
