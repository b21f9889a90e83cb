// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batcher.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"
#include "server/batching/forecast.h"
#include "server/retry/retry_hint.h"

namespace attendant {
namespace {

FinishedWork Finish(QueuedRequest& request) {
  return {std::move(request.work), request.queue, request.compute};
}

bool ByArrival(const QueuedRequest* a, const QueuedRequest* b) { return a->id < b->id; }

absl::Status CheckSequences(const EncodeWork& work, int64_t max_tokens) {
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
absl::Status CheckSize(const QueuedRequest& request, const BatcherOptions& options) {
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
  constexpr absl::string_view kNames[] = {"queue_full", "too_large",   "deadline",  "cancelled",
                                          "draining",   "device_lost", "infeasible"};
  static_assert(std::size(kNames) == static_cast<size_t>(RejectReason::kEnd));
  return kNames[static_cast<size_t>(reason)];
}

Batcher::Batcher(const BatcherOptions& options, std::vector<std::unique_ptr<Runner>> runners,
                 BatchObserver& observer, Executor executor, Threading& threading)
    : options_(options),
      policy_({.max_batch_tokens = options.max_batch_tokens,
               .max_batch_sequences = options.max_batch_sequences,
               .max_queue_delay = options.max_queue_delay,
               .max_priority_wait = options.max_priority_wait}),
      runners_(std::move(runners)),
      observer_(observer),
      executor_(std::move(executor)),
      threading_(threading),
      work_(threading.MakeCondition()),
      watch_(threading.MakeCondition()),
      all_completed_(threading.MakeCondition()),
      queue_({.max_tokens = options.max_queued_tokens, .max_requests = options.max_queued_requests},
             policy_),
      forecast_(options.cost, options.max_batch_tokens, runners_.size()),
      running_(runners_.size()) {
  ATTENDANT_CHECK(!runners_.empty());
  ATTENDANT_CHECK(options.slots.empty() || options.slots.size() == runners_.size());
  turns_.resize(runners_.size());
  for (size_t i = 0; i < options.slots.size(); ++i) {
    turns_[i] = std::make_unique<ComputeSlot::User>(*options.slots[i], options.weight);
  }
  for (size_t i = 0; i < runners_.size(); ++i) runners_[i]->StopWhen(running_.abandoned(i));
  try {
    StartThreads();
  } catch (...) {
    Stop();  // those that run use this object
    throw;
  }
}

Batcher::~Batcher() { Stop(); }

void Batcher::StartThreads() {
  for (size_t i = 0; i < runners_.size(); ++i) {
    threads_.push_back(threading_.Start(absl::StrCat("batch-", i), [this, i] { Work(i); }));
  }
  threads_.push_back(threading_.Start("batch-watch", [this] { Watch(); }));
}

void Batcher::Stop() {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    CloseWith(Draining());
    RejectAll(Stopped(), /*running_too=*/false, ended);
    work_->SignalAll();
    watch_->SignalAll();
  }
  Post(std::move(ended));
  threads_.clear();
}

RequestId Batcher::Submit(WorkRequest work) {
  auto request = std::make_unique<QueuedRequest>(std::move(work));
  request->tokens_waiting = request->tokens();
  request->head_ns_waiting = request->head_ns();
  request->priority = std::min(request->priority, options_.max_priority);
  const absl::Status size = CheckSize(*request, options_);
  if (!request->is_operation()) {
    request->encode().results.resize(request->encode().sequences.size());
  }

  Ended ended;
  RequestId id = 0;
  if (std::optional<Refusal> refusal = Admit(request, size, id, ended)) {
    ended.completions.push_back({std::move(request->done), std::move(refusal->status)});
  }
  Post(std::move(ended));
  return id;
}

std::optional<Batcher::Refusal> Batcher::Admit(std::unique_ptr<QueuedRequest>& request,
                                               const absl::Status& size, RequestId& id,
                                               Ended& ended) {
  absl::MutexLock lock(&mutex_);
  request->arrival = threading_.Now();
  ++open_requests_;
  if (std::optional<Refusal> refusal = FindRefusal(*request, size, ended)) {
    observer_.OnRejected(refusal->reason);
    return refusal;
  }
  if (request->num_sequences() == 0) {  // there is nothing to compute
    ended.completions.push_back({std::move(request->done), Finish(*request)});
    return std::nullopt;
  }
  id = request->id = ++last_id_;
  queue_.Add(*request);
  if (request->deadline < watched_until_) watch_->Signal();
  requests_.emplace(id, std::move(request));
  ReportQueue();
  work_->Signal();
  return std::nullopt;
}

std::optional<Batcher::Refusal> Batcher::FindRefusal(const QueuedRequest& request,
                                                     const absl::Status& size, Ended& ended) {
  if (!closed_.ok()) return Refusal{RejectReason::kDraining, closed_};
  if (!lost_.ok()) return Refusal{RejectReason::kDeviceLost, lost_};
  if (!size.ok()) return Refusal{RejectReason::kTooLarge, size};
  if (request.deadline <= request.arrival) {
    return Refusal{RejectReason::kDeadline,
                   absl::DeadlineExceededError("the deadline had passed on arrival")};
  }
  if (request.num_sequences() == 0) return std::nullopt;  // it needs no place, and no time
  const absl::Duration left = request.deadline - request.arrival;
  const absl::Duration needed = TimeToAnswer(request);
  if (left < needed && !forecast_.TriesAnyway(Queued(), request.arrival)) {
    return Refusal{RejectReason::kInfeasible,
                   absl::DeadlineExceededError(
                       absl::StrCat("the deadline is in ", absl::FormatDuration(left),
                                    ", the answer is expected in ", absl::FormatDuration(needed)))};
  }
  if (queue_.CheckRoom(request.client, request.tokens_waiting).ok()) return std::nullopt;
  // Expired requests must not keep out this one.
  Expire(request.arrival, absl::ZeroDuration(), ended);
  absl::Status room = queue_.CheckRoom(request.client, request.tokens_waiting);
  if (room.ok()) return std::nullopt;
  SetRetryAfter(room, forecast_.RetryDelay(Queued()));
  return Refusal{RejectReason::kQueueFull, std::move(room)};
}

void Batcher::Cancel(RequestId id) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second->completed) return;
    QueuedRequest& request = *found->second;
    const absl::Time now = threading_.Now();
    if (EndsByDeadline(request.deadline, now)) {
      RejectLate(request, now, ended);
    } else {
      Reject(request, RejectReason::kCancelled, absl::CancelledError("the request was cancelled"),
             ended);
    }
    ReportQueue();
  }
  Post(std::move(ended));
}

void Batcher::Drain(absl::Time deadline) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    CloseWith(Draining());
    work_->SignalAll();  // batches that wait to fill up start now
    while (open_requests_ > 0 && threading_.Now() < deadline) {
      all_completed_->WaitUntil(mutex_, deadline);
    }
    RejectAll(Stopped(), /*running_too=*/true, ended);
  }
  Post(std::move(ended));
}

void Batcher::End(const absl::Status& why) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    CloseWith(why);
    RejectAll({RejectReason::kDraining, why}, /*running_too=*/true, ended);
  }
  Post(std::move(ended));
}

void Batcher::CloseWith(const absl::Status& why) {
  if (closed_.ok()) closed_ = why;
}

void Batcher::SetLostListener(LostListener listener) {
  {
    absl::MutexLock lock(&mutex_);
    lost_listener_ = std::move(listener);
  }
  NotifyLost();
}

void Batcher::SetStallListener(StallListener listener) {
  absl::MutexLock lock(&mutex_);
  ATTENDANT_CHECK(!stall_listener_);
  stall_listener_ = std::move(listener);
  watch_->Signal();
}

// A request with sequences on several runners ends as soon as one of them is lost: see EndBatch.
void Batcher::LoseRunner(size_t index, const absl::Status& status) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    forecast_.Lose(index);
    const int64_t left = forecast_.capacity().workers;
    observer_.OnLost(static_cast<int>(std::ssize(runners_) - left));
    if (left > 0) return;
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

void Batcher::Expire(absl::Time now, absl::Duration needed, Ended& ended) {
  std::vector<QueuedRequest*> expired = queue_.TakeExpired(now + needed);
  for (const auto& [deadline, id] : running_deadlines_) {
    if (deadline > now) break;
    expired.push_back(requests_.find(id)->second.get());
  }
  if (expired.empty()) return;
  for (QueuedRequest* request : expired) RejectLate(*request, now, ended);
  ReportQueue();
}

void Batcher::RejectLate(QueuedRequest& request, absl::Time now, Ended& ended) {
  Reject(request, RejectReason::kDeadline,
         absl::DeadlineExceededError(absl::StrCat(
             request.deadline <= now ? "the deadline passed after "
                                     : "the deadline is too near after ",
             absl::FormatDuration(now - request.arrival),
             request.sequences_waiting() > 0 ? " in the queue" : " in the queue and a batch")),
         ended);
}

void Batcher::Reject(QueuedRequest& request, RejectReason reason, absl::Status status,
                     Ended& ended) {
  observer_.OnRejected(reason);
  Complete(request, std::move(status), ended);
}

absl::Status Batcher::Draining() { return absl::UnavailableError("the server is draining"); }

Batcher::Refusal Batcher::Stopped() {
  return {RejectReason::kDraining,
          absl::UnavailableError("the server stopped before the request was done")};
}

void Batcher::RejectAll(const Refusal& refusal, bool running_too, Ended& ended) {
  std::vector<QueuedRequest*> rejected;  // completing one changes the table
  for (const auto& [id, request] : requests_) {
    if (!request->completed && (running_too || request->queued)) rejected.push_back(request.get());
  }
  std::sort(rejected.begin(), rejected.end(), ByArrival);
  for (QueuedRequest* request : rejected) {
    Reject(*request, refusal.reason, refusal.status, ended);
  }
  ReportQueue();
}

// The only place where a request's completion leaves it.
void Batcher::Complete(QueuedRequest& request, absl::Status status, Ended& ended) {
  ATTENDANT_CHECK(!request.completed);
  request.completed = true;
  queue_.Remove(request);
  running_deadlines_.erase({request.deadline, request.id});
  auto done = std::move(request.done);
  if (status.ok()) {
    ATTENDANT_CHECK(request.sequences_running == 0);
    ended.completions.push_back({std::move(done), Finish(request)});
  } else {
    ended.completions.push_back({std::move(done), std::move(status)});
  }
  if (request.sequences_running == 0) {
    ended.requests.push_back(Release(request));
  } else {
    running_.Abandon();
  }
}

std::unique_ptr<QueuedRequest> Batcher::Release(QueuedRequest& request) {
  const auto found = requests_.find(request.id);
  std::unique_ptr<QueuedRequest> released = std::move(found->second);
  requests_.erase(found);
  return released;
}

void Batcher::Post(Ended ended) {
  if (ended.completions.empty()) return;
  const int64_t completed = static_cast<int64_t>(ended.completions.size());
  for (Completion& completion : ended.completions) {
    executor_([done = std::move(completion.done),
               finished = std::move(completion.finished)]() mutable { done(std::move(finished)); });
  }
  absl::MutexLock lock(&mutex_);
  open_requests_ -= completed;
  if (open_requests_ == 0) all_completed_->SignalAll();
}

// Called for each request with a deadline: must be cheap.
absl::Duration Batcher::TimeToAnswer(const QueuedRequest& request) const {
  const BatchCapacity capacity = forecast_.capacity();
  if (request.deadline == absl::InfiniteFuture() || !capacity.cost.fitted()) {
    return absl::ZeroDuration();
  }
  Backlog backlog{
      .until_free = forecast_.UntilFree(request.arrival),
      .same_priority = queue_.AheadAt(request.priority, request.client, request.tokens_waiting),
      .higher = queue_.HigherThan(request.priority),
      .max_priority_wait = options_.max_priority_wait};
  for (size_t i = 0; i < static_cast<size_t>(request.num_sequences()); ++i) {
    backlog.same_priority.Add(request.sequence_tokens(i), request.sequence_head_ns(i));
  }
  return AnswerTime(backlog, capacity);
}

// As if all sequences were as long.
BatchShape Batcher::Queued() const {
  const QueueSnapshot queue = queue_.Snapshot();
  return {.sequences = queue.sequences,
          .tokens = queue.tokens,
          .squares = queue.tokens * queue.tokens / std::max<int64_t>(queue.sequences, 1),
          .head_ns = queue.head_ns};
}

void Batcher::ReportQueue() { observer_.OnQueueChanged(queue_.tokens(), queue_.requests()); }

}  // namespace attendant
