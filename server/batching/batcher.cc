// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batcher.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"
#include "server/batching/retry_hint.h"

namespace attendant {
namespace {

// Time from `start` to `now`, never negative: the clock may be set back between them.
absl::Duration TimeSince(absl::Time start, absl::Time now) {
  return std::max(now - start, absl::ZeroDuration());
}

void NameThisThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

// The end of the items that belong to the same request as `items[first]`. A batch is a prefix of
// the queue, so a request's items are neighbours.
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

absl::Status CheckSequences(const EncodeWork& work, int64_t max_tokens) {
  if (work.sequences.empty()) return absl::InvalidArgumentError("the request has no sequences");
  for (size_t i = 0; i < work.sequences.size(); ++i) {
    const int64_t len = work.sequences[i].len();
    if (len == 0) return absl::InvalidArgumentError(absl::StrCat("sequence ", i, " has no tokens"));
    if (len > max_tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", i, " has ", len, " tokens, the limit is ", max_tokens));
    }
  }
  return absl::OkStatus();
}

// OK when the request could run in an empty server; else INVALID_ARGUMENT with both numbers.
absl::Status CheckSize(const PendingRequest& request, const BatcherOptions& options) {
  int64_t limit = options.max_queued_tokens;
  if (request.is_operation()) {
    limit = std::min(limit, options.max_batch_tokens);  // it runs in one batch
  } else {
    ATTENDANT_RETURN_IF_ERROR(CheckSequences(request.encode(), options.max_batch_tokens));
  }
  const int64_t tokens = request.tokens();
  if (tokens <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request has ", tokens, " tokens, the limit is ", limit));
}

}  // namespace

absl::string_view RejectReasonName(RejectReason reason) {
  constexpr absl::string_view kNames[] = {"queue_full", "too_large", "deadline",
                                          "cancelled",  "draining",  "device_lost"};
  return kNames[static_cast<size_t>(reason)];
}

Batcher::Batcher(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
                 BatchObserver& observer, Executor executor)
    : options_(options),
      policy_({.max_batch_tokens = options.max_batch_tokens,
               .max_batch_sequences = options.max_batch_sequences,
               .max_queue_delay = options.max_queue_delay}),
      runners_(std::move(runners)),
      observer_(observer),
      executor_(std::move(executor)),
      queue_(
          {.max_tokens = options.max_queued_tokens, .max_requests = options.max_queued_requests}),
      runners_left_(runners_.size()) {
  ATTENDANT_CHECK(!runners_.empty());
  for (size_t i = 0; i < runners_.size(); ++i) threads_.emplace_back([this, i] { Work(i); });
  threads_.emplace_back([this] { WatchDeadlines(); });
}

Batcher::~Batcher() {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = stopping_ = true;
    RejectAll(Stopped(), /*running_too=*/false, ended);
    work_.SignalAll();
    deadline_.SignalAll();
  }
  Post(std::move(ended));
  for (std::thread& thread : threads_) thread.join();
}

RequestId Batcher::Submit(PendingRequest pending) {
  auto request = std::make_unique<PendingRequest>(std::move(pending));
  request->tokens_waiting = request->tokens();
  const absl::Status size = CheckSize(*request, options_);
  if (!request->is_operation())
    request->result.sequences.resize(request->encode().sequences.size());

  Ended ended;
  RequestId id = 0;
  if (std::optional<Refusal> refusal = Admit(request, size, id, ended)) {
    ended.completions.push_back({std::move(request->done), std::move(refusal->status)});
  }
  Post(std::move(ended));
  return id;
}

std::optional<Batcher::Refusal> Batcher::Admit(std::unique_ptr<PendingRequest>& request,
                                               const absl::Status& size, RequestId& id,
                                               Ended& ended) {
  absl::MutexLock lock(&mutex_);
  request->arrival = absl::Now();
  ++open_requests_;
  if (std::optional<Refusal> refusal = FindRefusal(*request, size, ended)) {
    observer_.OnRejected(refusal->reason);
    return refusal;
  }
  id = request->id = ++last_id_;
  queue_.Add(*request);
  if (request->deadline < watched_deadline_) deadline_.Signal();
  requests_.emplace(id, std::move(request));
  ReportQueue();
  work_.Signal();
  return std::nullopt;
}

std::optional<Batcher::Refusal> Batcher::FindRefusal(const PendingRequest& request,
                                                     const absl::Status& size, Ended& ended) {
  if (draining_) {
    return Refusal{RejectReason::kDraining, absl::UnavailableError("the server is draining")};
  }
  if (!lost_.ok()) return Refusal{RejectReason::kDeviceLost, lost_};
  if (!size.ok()) return Refusal{RejectReason::kTooLarge, size};
  if (request.deadline <= request.arrival) {
    return Refusal{RejectReason::kDeadline,
                   absl::DeadlineExceededError("the deadline had passed on arrival")};
  }
  if (queue_.CheckRoom(request.tokens_waiting).ok()) return std::nullopt;
  Expire(request.arrival, ended);  // expired requests must not keep out this one
  absl::Status room = queue_.CheckRoom(request.tokens_waiting);
  if (room.ok()) return std::nullopt;
  SetRetryAfter(room, RetryDelay());
  return Refusal{RejectReason::kQueueFull, std::move(room)};
}

void Batcher::Cancel(RequestId id) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second->completed) return;
    Reject(*found->second, RejectReason::kCancelled,
           absl::CancelledError("the request was cancelled"), ended);
    ReportQueue();
  }
  Post(std::move(ended));
}

void Batcher::Drain(absl::Time deadline) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    work_.SignalAll();  // batches that wait to fill up start now
    while (open_requests_ > 0 && !all_completed_.WaitWithDeadline(&mutex_, deadline)) {
    }
    RejectAll(Stopped(), /*running_too=*/true, ended);
  }
  Post(std::move(ended));
}

void Batcher::SetLostListener(LostListener listener) {
  {
    absl::MutexLock lock(&mutex_);
    lost_listener_ = std::move(listener);
  }
  NotifyLost();
}

// A request with sequences on several runners ends as soon as one of them is lost: see EndBatch.
void Batcher::LoseRunner(const absl::Status& status) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    if (--runners_left_ > 0) return;
    lost_ = status;
    RejectAll({RejectReason::kDeviceLost, status}, /*running_too=*/false, ended);
  }
  Post(std::move(ended));
  NotifyLost();
}

void Batcher::NotifyLost() {
  LostListener listener;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (lost_.ok() || lost_listener_ == nullptr) return;
    listener = std::exchange(lost_listener_, nullptr);
    status = lost_;
  }
  listener(status);
}

void Batcher::Expire(absl::Time now, Ended& ended) {
  const std::vector<PendingRequest*> expired = queue_.TakeExpired(now);
  if (expired.empty()) return;
  for (PendingRequest* request : expired) {
    Reject(*request, RejectReason::kDeadline,
           absl::DeadlineExceededError(absl::StrCat(
               "the deadline passed after ", absl::FormatDuration(TimeSince(request->arrival, now)),
               " in the queue")),
           ended);
  }
  ReportQueue();
}

void Batcher::Reject(PendingRequest& request, RejectReason reason, absl::Status status,
                     Ended& ended) {
  observer_.OnRejected(reason);
  Complete(request, std::move(status), ended);
}

Batcher::Refusal Batcher::Stopped() {
  return {RejectReason::kDraining,
          absl::UnavailableError("the server stopped before the request was done")};
}

void Batcher::RejectAll(const Refusal& refusal, bool running_too, Ended& ended) {
  std::vector<PendingRequest*> rejected;  // completing one changes the table
  for (const auto& [id, request] : requests_) {
    if (!request->completed && (running_too || request->queued)) rejected.push_back(request.get());
  }
  for (PendingRequest* request : rejected) {
    Reject(*request, refusal.reason, refusal.status, ended);
  }
  ReportQueue();
}

// The only place where a request's completion leaves it.
void Batcher::Complete(PendingRequest& request, absl::StatusOr<RequestResult> result,
                       Ended& ended) {
  ATTENDANT_CHECK(!request.completed);
  request.completed = true;
  queue_.Remove(request);
  ended.completions.push_back({std::move(request.done), std::move(result)});
  if (request.sequences_running == 0) Release(request, ended);
}

void Batcher::Release(PendingRequest& request, Ended& ended) {
  const auto found = requests_.find(request.id);
  ended.requests.push_back(std::move(found->second));
  requests_.erase(found);
}

void Batcher::Post(Ended ended) {
  if (ended.completions.empty()) return;
  const int64_t completed = static_cast<int64_t>(ended.completions.size());
  for (Completion& completion : ended.completions) {
    executor_([done = std::move(completion.done), result = std::move(completion.result)]() mutable {
      done(std::move(result));
    });
  }
  absl::MutexLock lock(&mutex_);
  open_requests_ -= completed;
  if (open_requests_ == 0) all_completed_.SignalAll();
}

void Batcher::LearnSpeed(absl::Duration time_per_token) {
  const bool first = time_per_token_ == absl::ZeroDuration();
  time_per_token_ = first ? time_per_token : 0.8 * time_per_token_ + 0.2 * time_per_token;
}

// How long the workers need for the queue, estimated from the last batches.
absl::Duration Batcher::RetryDelay() const {
  if (time_per_token_ == absl::ZeroDuration()) return absl::Milliseconds(100);
  const double workers = static_cast<double>(std::max<size_t>(runners_left_, 1));
  const absl::Duration delay = time_per_token_ * static_cast<double>(queue_.tokens()) / workers;
  return std::clamp(delay, absl::Milliseconds(1), absl::Seconds(10));
}

void Batcher::ReportQueue() { observer_.OnQueueChanged(queue_.tokens(), queue_.requests()); }

void Batcher::Work(size_t index) {
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

bool Batcher::NextBatch(std::vector<BatchItem>& items, Ended& ended) {
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

void Batcher::StartBatch(std::span<const BatchItem> items, absl::Time now) {
  ATTENDANT_CHECK(!items.empty());
  for (const BatchItem& item : items) {
    ++item.request->sequences_running;
    if (!item.request->queued) item.request->result.queue = TimeSince(item.request->arrival, now);
  }
  ReportQueue();
  // Admission wakes one worker for each request: wake another one for the rest of the queue.
  if (queue_.requests() > 0) work_.Signal();
}

void Batcher::EndBatch(std::span<const BatchItem> items, const absl::Status& status,
                       absl::Duration compute) {
  const int64_t tokens =
      CountTokens(items);  // before a request that ends takes its operation along
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

void Batcher::EndSequences(PendingRequest& request, int64_t sequences, const absl::Status& status,
                           Ended& ended) {
  request.sequences_running -= sequences;
  if (request.completed) {
    if (request.sequences_running == 0) Release(request, ended);
  } else if (!status.ok()) {
    Complete(request, status, ended);
  } else if (!request.queued && request.sequences_running == 0) {
    if (auto* operation = std::get_if<std::unique_ptr<Operation>>(&request.work)) {
      request.result.operation = std::move(*operation);
    }
    Complete(request, std::move(request.result), ended);
  }
}

void Batcher::WatchDeadlines() {
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
