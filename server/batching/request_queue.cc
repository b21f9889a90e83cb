// SPDX-License-Identifier: Apache-2.0
#include "server/batching/request_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"

namespace attendant {

bool RequestQueue::WaitOrder::operator()(const QueuedRequest* a, const QueuedRequest* b) const {
  if (a->place.waiting_since != b->place.waiting_since) {
    return a->place.waiting_since < b->place.waiting_since;
  }
  return a->id < b->id;
}

bool RequestQueue::ArrivalOrder::operator()(const QueuedRequest* a, const QueuedRequest* b) const {
  return a->id < b->id;
}

bool RequestQueue::DeadlineOrder::operator()(const QueuedRequest* a, const QueuedRequest* b) const {
  if (a->deadline != b->deadline) return a->deadline < b->deadline;
  return a->id < b->id;
}

RequestQueue::RequestQueue(const Limits& limits, const BatchPolicy& policy)
    : limits_(limits), policy_(policy) {
  ATTENDANT_CHECK(limits.max_tokens > 0);
  ATTENDANT_CHECK(limits.max_requests > 0);
}

absl::Status RequestQueue::CheckRoom(uint64_t client, int64_t tokens) const {
  const int64_t free_tokens = limits_.max_tokens - tokens_ - tokens;
  if (free_tokens < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("queue full: ", tokens_ + tokens, " of ", limits_.max_tokens,
                     " tokens queued, this request's ", tokens, " included"));
  }
  const int64_t free_requests = limits_.max_requests - requests() - 1;
  if (free_requests < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("queue full: ", requests() + 1, " of ",
                                                     limits_.max_requests,
                                                     " requests queued, this one included"));
  }
  ClientTotals own;
  for (const auto& [priority, level] : levels_) {
    const ClientTotals there = level.totals.Of(client);
    own.requests += there.requests;
    own.tokens += there.tokens;
  }
  const bool within = own.tokens + tokens <= kClientShare * free_tokens &&
                      own.requests + 1 <= kClientShare * free_requests;
  if (own.requests == 0 || within) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("queue full for this client: ", own.tokens + tokens, " tokens in ",
                   own.requests + 1, " requests, this one's ", tokens, " included, beside ",
                   free_tokens, " tokens and ", free_requests, " requests that stay free"));
}

void RequestQueue::Add(QueuedRequest& request) {
  ATTENDANT_CHECK(!request.queued && request.sequences_waiting() > 0);
  request.queued = true;
  request.place = {.waiting_since = request.arrival};
  levels_.try_emplace(request.priority, policy_).first->second.order.Add(request);
  Count(request, 1);
  by_wait_.insert(&request);
  by_arrival_.insert(by_arrival_.end(), &request);
  if (request.deadline != absl::InfiniteFuture()) by_deadline_.insert(&request);
}

void RequestQueue::Remove(QueuedRequest& request) {
  if (!request.queued) return;
  request.queued = false;
  if (passed_long_ == &request) passed_long_ = NextPassedLong(request);
  Count(request, -1);
  const auto level = levels_.find(request.priority);
  level->second.order.Remove(request);
  if (level->second.totals.requests() == 0) levels_.erase(level);
  by_arrival_.erase(&request);
  by_wait_.erase(&request);
  by_deadline_.erase(&request);
}

std::vector<QueuedRequest*> RequestQueue::TakeExpired(absl::Time now) {
  std::vector<QueuedRequest*> expired;
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

RequestQueue::Level& RequestQueue::LevelOf(const QueuedRequest& request) {
  return levels_.find(request.priority)->second;
}

RequestQueue::Position RequestQueue::Behind(const QueuedRequest& request) {
  const ServiceOrder& order = LevelOf(request).order;
  return {request.priority,
          request.place.in_turn ? order.PositionOf(request) : order.EndOfClient(request)};
}

QueuedRequest* RequestQueue::Next(const Position& position) const {
  for (auto level = levels_.lower_bound(position.priority); level != levels_.end(); ++level) {
    const bool inside = level->first == position.priority;
    QueuedRequest* const next =
        level->second.order.After(inside ? position.in_level : ServiceOrder::Position{});
    if (next != nullptr) return next;
  }
  return nullptr;
}

void RequestQueue::Walk(Lengths lengths, Filling& filling) {
  Position last;
  const QueuedRequest* left_out = nullptr;  // the first long one
  for (int passed = 0; passed < kMaxPassedShort && policy_.Fits(filling.fill, 1);) {
    QueuedRequest* const next = Next(last);
    if (next == nullptr) return;
    QueuedRequest& request = *next;
    // Short sequences go before the long ones of their own priority only.
    if (left_out != nullptr && request.priority < left_out->priority) return;
    if (filling.owed != nullptr && request.priority <= filling.owed->priority) {
      QueuedRequest& owed = *std::exchange(filling.owed, nullptr);
      if (Serve(owed, Lengths::kAll, filling) && !filling.has_long) passed_long_ = &owed;
      continue;
    }
    Level& level = LevelOf(request);
    ServiceOrder& order = level.order;
    if (!order.MayTake(request)) {
      if (!order.EndTurn(request)) last = Behind(request);
      continue;
    }
    if (!request.place.in_turn) request.place.deficit += policy_.Turn(request.tokens_waiting);
    request.place.in_turn = true;
    const bool takes_long = filling.has_long || !level.totals.MostlyLong();
    const Lengths taken = takes_long ? Lengths::kAll : lengths;
    if (Serve(request, taken, filling)) {
      const bool is_long = policy_.Long(request.sequence_tokens(request.next_sequence));
      if (!is_long) ++passed;
      if (is_long && taken == Lengths::kShort && left_out == nullptr) left_out = &request;
      if (is_long && !filling.has_long && passed_long_ == nullptr) passed_long_ = &request;
      order.SetBegun(request, !is_long);
      last = {request.priority, order.PositionOf(request)};
    } else if (request.queued) {
      request.place.in_turn = false;
      order.MoveToEnd(request);
    }
  }
}

void RequestQueue::ServeOverdue(bool wait, Filling& filling) {
  QueuedRequest* request = NextOverdue(filling.now);
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

QueuedRequest* RequestQueue::NextOverdue(absl::Time now) const {
  if (by_wait_.empty()) return nullptr;
  QueuedRequest* const request = *by_wait_.begin();
  return policy_.Overdue(request->place.waiting_since, now) ? request : nullptr;
}

bool RequestQueue::Serve(QueuedRequest& request, Lengths lengths, Filling& filling) {
  while (request.queued) {
    const int64_t len = request.sequence_tokens(request.next_sequence);
    if (len > request.place.deficit) return false;
    const bool is_long = policy_.Long(len);
    if (is_long && lengths == Lengths::kShort) return true;
    if (!policy_.Fits(filling.fill, len)) return true;
    filling.has_long |= is_long;
    LevelOf(request).order.Spend(request, len);
    TakeSequence(request, filling);
  }
  return false;
}

void RequestQueue::TakeSequence(QueuedRequest& request, Filling& filling) {
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

QueuedRequest* RequestQueue::NextPassedLong(const QueuedRequest& request) {
  Position last = Behind(request);
  while (QueuedRequest* const next = Next(last)) {
    const int64_t len = next->sequence_tokens(next->next_sequence);
    if (next->place.in_turn && policy_.Long(len) && len <= next->place.deficit) return next;
    last = Behind(*next);
  }
  return nullptr;
}

void RequestQueue::Progress(QueuedRequest& request, absl::Time now) {
  if (request.place.waiting_since == now) return;
  by_wait_.erase(&request);
  request.place.waiting_since = now;
  by_wait_.insert(&request);
}

void RequestQueue::Count(const QueuedRequest& request, int64_t sign) {
  tokens_ += sign * request.tokens_waiting;
  sequences_ += sign * request.sequences_waiting();
  head_ns_ += sign * request.head_ns_waiting;
  LevelOf(request).totals.Count(request, sign);
}

BatchShape RequestQueue::HigherThan(int priority) const {
  BatchShape sum;
  for (const auto& [higher, level] : levels_) {
    if (higher <= priority) break;
    const BatchShape& all = level.totals.all();
    sum.tokens += all.tokens;
    sum.sequences += all.sequences;
    sum.head_ns += all.head_ns;
  }
  return sum;
}

BatchShape RequestQueue::AheadAt(int priority, uint64_t client, int64_t tokens) const {
  const auto level = levels_.find(priority);
  return level == levels_.end() ? BatchShape{} : level->second.totals.AheadOf(client, tokens);
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
