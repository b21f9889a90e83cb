// SPDX-License-Identifier: Apache-2.0
#include "server/batching/request_queue.h"

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"

namespace attendant {

bool RequestQueue::ServiceOrder::operator()(const PendingRequest* a,
                                            const PendingRequest* b) const {
  if (a->priority != b->priority) return a->priority > b->priority;
  return a->id < b->id;
}

bool RequestQueue::ArrivalOrder::operator()(const PendingRequest* a,
                                            const PendingRequest* b) const {
  return a->id < b->id;
}

bool RequestQueue::DeadlineOrder::operator()(const PendingRequest* a,
                                             const PendingRequest* b) const {
  if (a->deadline != b->deadline) return a->deadline < b->deadline;
  return a->id < b->id;
}

RequestQueue::RequestQueue(const Limits& limits) : limits_(limits) {
  ATTENDANT_CHECK(limits.max_tokens > 0);
  ATTENDANT_CHECK(limits.max_requests > 0);
}

absl::Status RequestQueue::CheckRoom(int64_t tokens) const {
  if (tokens > limits_.max_tokens - tokens_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("queue full: ", tokens_ + tokens, " of ", limits_.max_tokens,
                     " tokens queued, this request's ", tokens, " included"));
  }
  if (requests() >= limits_.max_requests) {
    return absl::ResourceExhaustedError(absl::StrCat("queue full: ", requests() + 1, " of ",
                                                     limits_.max_requests,
                                                     " requests queued, this one included"));
  }
  return absl::OkStatus();
}

void RequestQueue::Add(PendingRequest& request) {
  ATTENDANT_CHECK(!request.queued && request.sequences_waiting() > 0);
  request.queued = true;
  tokens_ += request.tokens_waiting;
  sequences_ += request.sequences_waiting();
  by_service_.insert(&request);
  by_arrival_.insert(by_arrival_.end(), &request);
  if (request.deadline != absl::InfiniteFuture()) by_deadline_.insert(&request);
}

void RequestQueue::Remove(PendingRequest& request) {
  if (!request.queued) return;
  request.queued = false;
  tokens_ -= request.tokens_waiting;
  sequences_ -= request.sequences_waiting();
  by_service_.erase(&request);
  by_arrival_.erase(&request);
  by_deadline_.erase(&request);
}

std::vector<PendingRequest*> RequestQueue::TakeExpired(absl::Time now) {
  std::vector<PendingRequest*> expired;
  while (next_deadline() <= now) {
    expired.push_back(*by_deadline_.begin());
    Remove(*expired.back());
  }
  return expired;
}

void RequestQueue::TakeBatch(const BatchPolicy& policy, std::vector<BatchItem>& batch) {
  BatchFill fill;
  while (PendingRequest* request = front()) {
    const int64_t len = request->sequence_tokens(request->next_sequence);
    if (!policy.Fits(fill, len)) break;
    fill.tokens += len;
    ++fill.sequences;
    TakeSequence(*request, batch);
  }
}

void RequestQueue::TakeSequence(PendingRequest& request, std::vector<BatchItem>& batch) {
  batch.push_back({.request = &request, .sequence = request.next_sequence});
  const int64_t len = batch.back().tokens();
  if (request.sequences_waiting() == 1) Remove(request);
  if (request.queued) {
    tokens_ -= len;
    --sequences_;
  }
  request.tokens_waiting -= len;
  ++request.next_sequence;
}

QueueSnapshot RequestQueue::Snapshot() const {
  QueueSnapshot snapshot{.tokens = tokens_, .sequences = sequences_};
  if (!by_arrival_.empty()) snapshot.oldest_arrival = (*by_arrival_.begin())->arrival;
  return snapshot;
}

absl::Time RequestQueue::next_deadline() const {
  return by_deadline_.empty() ? absl::InfiniteFuture() : (*by_deadline_.begin())->deadline;
}

PendingRequest* RequestQueue::front() const {
  return by_service_.empty() ? nullptr : *by_service_.begin();
}

}  // namespace attendant
