// SPDX-License-Identifier: Apache-2.0
#include "server/batching/request_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/check.h"

namespace attendant {

bool RequestQueue::ServiceOrder::operator()(const PendingRequest* a,
                                            const PendingRequest* b) const {
  if (a->priority != b->priority) return a->priority > b->priority;
  return a->place.turn < b->place.turn;
}

bool RequestQueue::WaitOrder::operator()(const PendingRequest* a, const PendingRequest* b) const {
  if (a->place.waiting_since != b->place.waiting_since) {
    return a->place.waiting_since < b->place.waiting_since;
  }
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

RequestQueue::RequestQueue(const Limits& limits, const BatchPolicy& policy)
    : limits_(limits), policy_(policy) {
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
  ++levels_[request.priority].requests;
  Count(request, 1);
  request.place = {.turn = ++last_turn_, .waiting_since = request.arrival};
  by_service_.insert(&request);
  by_wait_.insert(&request);
  by_arrival_.insert(by_arrival_.end(), &request);
  if (request.deadline != absl::InfiniteFuture()) by_deadline_.insert(&request);
}

void RequestQueue::Remove(PendingRequest& request) {
  if (!request.queued) return;
  request.queued = false;
  Count(request, -1);
  const auto level = levels_.find(request.priority);
  if (--level->second.requests == 0) levels_.erase(level);
  if (passed_long_ == &request) passed_long_ = NextPassedLong(request);
  by_service_.erase(&request);
  by_arrival_.erase(&request);
  by_wait_.erase(&request);
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

void RequestQueue::TakeBatch(absl::Time now, std::vector<BatchItem>& batch) {
  Filling filling{now, batch, {}};
  ServeOverdue(/*wait=*/overdue_first_ && passed_long_ != nullptr, filling);
  overdue_first_ = !batch.empty();
  filling.owed = std::exchange(passed_long_, nullptr);
  const size_t overdue = batch.size();
  Walk(Lengths::kShort, filling);
  if (passed_long_ == nullptr) passed_long_ = std::exchange(filling.owed, nullptr);
  if (filling.has_long || batch.size() == overdue) Walk(Lengths::kAll, filling);
}

void RequestQueue::Walk(Lengths lengths, Filling& filling) {
  PendingRequest* last_passed = nullptr;
  const PendingRequest* left_out = nullptr;  // the first long one
  for (int passed = 0; passed < kMaxPassedShort && policy_.Fits(filling.fill, 1);) {
    const auto next =
        last_passed == nullptr ? by_service_.begin() : by_service_.upper_bound(last_passed);
    if (next == by_service_.end()) return;
    PendingRequest& request = **next;
    // Short sequences go before the long ones of their own priority only.
    if (left_out != nullptr && request.priority < left_out->priority) return;
    if (filling.owed != nullptr && request.priority <= filling.owed->priority) {
      PendingRequest& owed = *std::exchange(filling.owed, nullptr);
      if (Serve(owed, Lengths::kAll, filling) && !filling.has_long) passed_long_ = &owed;
      continue;
    }
    if (!request.place.in_turn) request.place.deficit += policy_.Turn(request.tokens_waiting);
    request.place.in_turn = true;
    if (Serve(request, lengths, filling)) {
      const bool is_long = policy_.Long(request.sequence_tokens(request.next_sequence));
      if (!is_long) ++passed;
      if (is_long && lengths == Lengths::kShort && left_out == nullptr) {
        left_out = &request;
        if (!filling.has_long && passed_long_ == nullptr) passed_long_ = &request;
      }
      last_passed = &request;
    } else if (request.queued) {
      MoveToEnd(request);
    }
  }
}

void RequestQueue::ServeOverdue(bool wait, Filling& filling) {
  PendingRequest* request = NextOverdue(filling.now);
  overdue_tokens_ = request == nullptr ? 0 : overdue_tokens_ + policy_.quantum();
  while (request != nullptr && !wait) {
    const int64_t len = request->sequence_tokens(request->next_sequence);
    if (policy_.Part(len) > overdue_tokens_ || !policy_.Fits(filling.fill, len)) return;
    overdue_tokens_ -= policy_.Part(len);
    // Also in a turn that is used up: Walk, which ends turns, may not come so far for long.
    request->place.deficit = std::max(request->place.deficit, len);
    TakeSequence(*request, filling);
    if (!request->queued) request = NextOverdue(filling.now);
  }
}

PendingRequest* RequestQueue::NextOverdue(absl::Time now) const {
  if (by_wait_.empty() || *by_wait_.begin() == *by_service_.begin()) return nullptr;
  PendingRequest* const request = *by_wait_.begin();
  return policy_.Overdue(request->place.waiting_since, now) ? request : nullptr;
}

bool RequestQueue::Serve(PendingRequest& request, Lengths lengths, Filling& filling) {
  while (request.queued) {
    const int64_t len = request.sequence_tokens(request.next_sequence);
    if (len > request.place.deficit) return false;
    const bool is_long = policy_.Long(len);
    if (is_long && lengths == Lengths::kShort) return true;
    if (!policy_.Fits(filling.fill, len)) return true;
    filling.has_long |= is_long;
    TakeSequence(request, filling);
  }
  return false;
}

void RequestQueue::TakeSequence(PendingRequest& request, Filling& filling) {
  filling.batch.push_back({.request = &request, .sequence = request.next_sequence});
  const int64_t len = filling.batch.back().tokens();
  filling.fill.tokens += len;
  ++filling.fill.sequences;
  request.place.deficit -= len;
  if (&request == passed_long_) passed_long_ = nullptr;
  const bool last = request.sequences_waiting() == 1;
  if (last) {
    Remove(request);
  } else {
    Count(request, -1);
  }
  request.tokens_waiting -= len;
  request.head_ns_waiting -= request.sequence_head_ns(request.next_sequence);
  ++request.next_sequence;
  if (last) return;
  Count(request, 1);
  Progress(request, filling.now);
}

void RequestQueue::MoveToEnd(PendingRequest& request) {
  by_service_.erase(&request);
  request.place.in_turn = false;
  request.place.turn = ++last_turn_;
  by_service_.insert(&request);
}

PendingRequest* RequestQueue::NextPassedLong(PendingRequest& request) const {
  for (auto next = by_service_.upper_bound(&request);
       next != by_service_.end() && (*next)->place.in_turn; ++next) {
    const int64_t len = (*next)->sequence_tokens((*next)->next_sequence);
    if (policy_.Long(len) && len <= (*next)->place.deficit) return *next;
  }
  return nullptr;
}

void RequestQueue::Progress(PendingRequest& request, absl::Time now) {
  if (request.place.waiting_since == now) return;
  by_wait_.erase(&request);
  request.place.waiting_since = now;
  by_wait_.insert(&request);
}

void RequestQueue::Count(const PendingRequest& request, int64_t sign) {
  const int64_t tokens = sign * request.tokens_waiting;
  const int64_t sequences = sign * request.sequences_waiting();
  tokens_ += tokens;
  sequences_ += sequences;
  const int64_t head_ns = sign * request.head_ns_waiting;
  head_ns_ += head_ns;
  Level& level = levels_.find(request.priority)->second;
  level.all.tokens += tokens;
  level.all.sequences += sequences;
  level.all.head_ns += head_ns;
  Level::Size& size = level.sizes[std::bit_width(static_cast<uint64_t>(request.tokens_waiting))];
  size.requests += sign;
  size.tokens += tokens;
  size.sequences += sequences;
  size.head_ns += head_ns;
}

BatchShape RequestQueue::HigherThan(int priority) const {
  BatchShape sum;
  for (auto level = levels_.upper_bound(priority); level != levels_.end(); ++level) {
    sum.tokens += level->second.all.tokens;
    sum.sequences += level->second.all.sequences;
    sum.head_ns += level->second.all.head_ns;
  }
  return sum;
}

BatchShape RequestQueue::AheadAt(int priority, int64_t tokens) const {
  const auto level = levels_.find(priority);
  if (level == levels_.end()) return {};
  BatchShape sum;
  for (const Level::Size& size : level->second.sizes) {
    if (size.requests == 0) continue;
    const int64_t average = CeilDivide(size.tokens, size.requests);
    const int64_t each = policy_.TakenMeanwhile(average, tokens);
    const int64_t taken = std::min(size.tokens, size.requests * each);
    sum.tokens += taken;
    sum.sequences += CeilDivide(size.sequences * taken, size.tokens);
    sum.head_ns +=
        static_cast<int64_t>(static_cast<double>(size.head_ns) * static_cast<double>(taken) /
                             static_cast<double>(size.tokens));
  }
  return sum;
}

QueueSnapshot RequestQueue::Snapshot() const {
  QueueSnapshot snapshot{.tokens = tokens_, .sequences = sequences_, .head_ns = head_ns_};
  if (!by_arrival_.empty()) snapshot.oldest_arrival = (*by_arrival_.begin())->arrival;
  return snapshot;
}

absl::Time RequestQueue::next_deadline() const {
  return by_deadline_.empty() ? absl::InfiniteFuture() : (*by_deadline_.begin())->deadline;
}

}  // namespace attendant
