// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batcher_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/check.h"
#include "server/batching/admission.h"
#include "server/batching/retry_hint.h"

namespace attendant {

Batcher::State::State(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
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

Batcher::State::~State() {
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

RequestId Batcher::State::Submit(PendingRequest pending) {
  auto request = std::make_unique<AdmittedRequest>();
  request->tokens_waiting = CountTokens(pending);
  const absl::Status size = CheckSize(pending, options_);
  request->result.sequences.resize(pending.sequences.size());
  request->request = std::move(pending);

  Ended ended;
  RequestId id = 0;
  if (std::optional<Refusal> refusal = Admit(request, size, id, ended)) {
    ended.completions.push_back({std::move(request->request.done), std::move(refusal->status)});
  }
  Post(std::move(ended));
  return id;
}

std::optional<Batcher::State::Refusal> Batcher::State::Admit(
    std::unique_ptr<AdmittedRequest>& request, const absl::Status& size, RequestId& id,
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
  if (request->request.deadline < watched_deadline_) deadline_.Signal();
  requests_.emplace(id, std::move(request));
  ReportQueue();
  work_.Signal();
  return std::nullopt;
}

std::optional<Batcher::State::Refusal> Batcher::State::FindRefusal(const AdmittedRequest& request,
                                                                   const absl::Status& size,
                                                                   Ended& ended) {
  if (draining_) {
    return Refusal{RejectReason::kDraining, absl::UnavailableError("the server is draining")};
  }
  if (!lost_.ok()) return Refusal{RejectReason::kDeviceLost, lost_};
  if (!size.ok()) return Refusal{RejectReason::kTooLarge, size};
  if (request.request.deadline <= request.arrival) {
    return Refusal{RejectReason::kDeadline,
                   absl::DeadlineExceededError("the deadline had passed on arrival")};
  }
  if (queue_.CheckRoom(request.tokens_waiting).ok()) return std::nullopt;
  Expire(request.arrival, ended);  // the dead must not keep out the living
  absl::Status room = queue_.CheckRoom(request.tokens_waiting);
  if (room.ok()) return std::nullopt;
  SetRetryAfter(room, RetryDelay());
  return Refusal{RejectReason::kQueueFull, std::move(room)};
}

void Batcher::State::Cancel(RequestId id) {
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

void Batcher::State::Drain(absl::Time deadline) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    work_.SignalAll();  // batches that wait to fill up go now
    while (open_requests_ > 0 && !all_completed_.WaitWithDeadline(&mutex_, deadline)) {
    }
    RejectAll(Stopped(), /*running_too=*/true, ended);
  }
  Post(std::move(ended));
}

void Batcher::State::SetLostListener(LostListener listener) {
  {
    absl::MutexLock lock(&mutex_);
    lost_listener_ = std::move(listener);
  }
  TellLost();
}

// A request that has sequences on other runners ends as soon as one of them is lost: EndBatch.
void Batcher::State::LoseRunner(const absl::Status& status) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    if (--runners_left_ > 0) return;
    lost_ = status;
    RejectAll({RejectReason::kDeviceLost, status}, /*running_too=*/false, ended);
  }
  Post(std::move(ended));
  TellLost();
}

void Batcher::State::TellLost() {
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

void Batcher::State::Expire(absl::Time now, Ended& ended) {
  const std::vector<AdmittedRequest*> expired = queue_.TakeExpired(now);
  if (expired.empty()) return;
  for (AdmittedRequest* request : expired) {
    Reject(*request, RejectReason::kDeadline,
           absl::DeadlineExceededError(absl::StrCat(
               "the deadline passed after ", absl::FormatDuration(TimeSince(request->arrival, now)),
               " in the queue")),
           ended);
  }
  ReportQueue();
}

void Batcher::State::Reject(AdmittedRequest& request, RejectReason reason, absl::Status status,
                            Ended& ended) {
  observer_.OnRejected(reason);
  Complete(request, std::move(status), ended);
}

Batcher::State::Refusal Batcher::State::Stopped() {
  return {RejectReason::kDraining,
          absl::UnavailableError("the server stopped before the request was done")};
}

void Batcher::State::RejectAll(const Refusal& refusal, bool running_too, Ended& ended) {
  std::vector<AdmittedRequest*> rejected;  // completing one changes the table
  for (const auto& [id, request] : requests_) {
    if (!request->completed && (running_too || request->queued)) rejected.push_back(request.get());
  }
  for (AdmittedRequest* request : rejected) {
    Reject(*request, refusal.reason, refusal.status, ended);
  }
  ReportQueue();
}

// The only place where a request's completion leaves it.
void Batcher::State::Complete(AdmittedRequest& request, absl::StatusOr<RequestResult> result,
                              Ended& ended) {
  ATTENDANT_CHECK(!request.completed);
  request.completed = true;
  queue_.Remove(request);
  ended.completions.push_back({std::move(request.request.done), std::move(result)});
  if (request.sequences_running == 0) Release(request, ended);
}

void Batcher::State::Release(AdmittedRequest& request, Ended& ended) {
  const auto found = requests_.find(request.id);
  ended.requests.push_back(std::move(found->second));
  requests_.erase(found);
}

void Batcher::State::Post(Ended ended) {
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

void Batcher::State::LearnSpeed(absl::Duration time_per_token) {
  const bool first = time_per_token_ == absl::ZeroDuration();
  time_per_token_ = first ? time_per_token : 0.8 * time_per_token_ + 0.2 * time_per_token;
}

// How long the workers need for what is queued, as far as the last batches tell.
absl::Duration Batcher::State::RetryDelay() const {
  if (time_per_token_ == absl::ZeroDuration()) return absl::Milliseconds(100);
  const double workers = static_cast<double>(std::max<size_t>(runners_left_, 1));
  const absl::Duration delay = time_per_token_ * static_cast<double>(queue_.tokens()) / workers;
  return std::clamp(delay, absl::Milliseconds(1), absl::Seconds(10));
}

void Batcher::State::ReportQueue() { observer_.OnQueueChanged(queue_.tokens(), queue_.requests()); }

}  // namespace attendant
