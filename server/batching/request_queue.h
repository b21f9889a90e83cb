// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batch_policy.h"
#include "server/batching/cost_model.h"
#include "server/batching/level_totals.h"
#include "server/batching/queued_request.h"
#include "server/batching/service_order.h"

namespace attendant {

// The requests with sequences that wait for a batch. Higher priorities come first; the clients of
// one priority take turns (ServiceOrder), and in them the requests of each client (BatchPolicy says
// how much each takes), new ones at the end. Bounded by tokens and by requests. Owns nothing; reads
// no clock. Thread-compatible.
//
// The bounds of a request's wait. B is a full batch, Q the quantum, a quarter of B:
// - Its client's turns. Between two of them every other client of its priority takes Q in the long
//   run, and at most Q + B at once: it begins requests until they come to Q, and what it took
//   beyond that it has less in its next turns. A client without a request there comes last.
// - Among its client's. Before its first turn, every request that was there before it takes its own
//   tokens, or Q where those are more than B. A request of up to B needs one turn. A larger one
//   needs one for each Q, and between two of them every other takes what it takes in a turn.
//   Sequences of one request keep their order.
// - Its place. A sequence of at most Q tokens whose turn has come but that does not fit into the
//   rest of a batch keeps its place, and shorter ones behind it fill that rest. The first one of a
//   client keeps its client's place too. The first one of a priority goes at the latest into the
//   batch after the next, but for long ones whose turn came before its own.
// - Long sequences, of more than Q tokens. While they would take more of the next turns of their
//   priority than short ones, a batch leaves them out, so that a short sequence does not wait for
//   the compute of long ones. A batch that has a long one already takes all. What was left out, or
//   did not fit, of a batch without a long one is owed: the next batch that comes to this priority
//   begins there with the first long one that the earlier batch came to, or with the next one if
//   that was cancelled. So two batches at most bring the next long sequence into work, where no
//   higher priority, no long overdue sequence and no request whose turn came before fills them. One
//   that never fits beside long ones of other clients goes when it is overdue. Simulated: in a
//   flood of 512 tokens at 80 % load 64-token requests at p99 take 1.06 full batches, and 5.7 if
//   none is left out; real texts at 85 % load take 110 ms at p99, and 941 if all batches of short
//   ones leave out the long.
// - Lower priorities. A request is overdue when it has had no progress for max_priority_wait. While
//   there are such requests, a quarter of each batch goes to them, the one that has waited longest
//   first: a quarter of the tokens or of the sequences, whichever is used up first. What is left of
//   it is kept for the next batch: so a long sequence goes after at most four, and where one
//   sequence is a whole batch, every fourth is theirs. When a batch that began with them has left
//   out a long sequence of a higher priority, the next one begins with that, and they keep their
//   quarter for the batch behind it.
//
// The bounds of what is admitted: the queue's, and for a client with requests in it, kClientShare
// times of what stays free. So one client alone gets eight ninths of the queue, and two that ask
// for all get eight seventeenths each: there is always room for others.
//
// Add, Remove and TakeExpired are O(log requests) for each request; the Remove of a long sequence
// that goes first next also passes over the clients, and the short ones whose turn has come.
// TakeBatch is that for each sequence taken and for each turn without one; in each turn of a client
// it passes over at most 8 short sequences and each long one, of which the queue holds at most
// max_tokens / Q.
class RequestQueue {
 public:
  struct Limits {
    int64_t max_tokens = 0;
    int64_t max_requests = 0;
  };

  RequestQueue(const Limits& limits, const BatchPolicy& policy);

  // OK when a request of `tokens` fits in beside what waits, and beside what waits of its client;
  // else RESOURCE_EXHAUSTED with the numbers.
  absl::Status CheckRoom(uint64_t client, int64_t tokens) const;

  // REQUIRES: CheckRoom is OK for its client and its tokens_waiting; it lives until it has left the
  // queue; its id is above every earlier one's.
  void Add(QueuedRequest& request);

  // Takes it out with all its waiting sequences; nothing happens when it is not queued.
  void Remove(QueuedRequest& request);

  // Takes out and returns every request whose deadline is not after `now`.
  std::vector<QueuedRequest*> TakeExpired(absl::Time now);

  // Moves sequences to `batch`. A request leaves the queue with its last sequence. Items of one
  // request are in its order, but need not be neighbours.
  void TakeBatch(absl::Time now, std::vector<BatchItem>& batch);

  // The queued work that goes into batches before the last sequence of a new request of this
  // priority. HigherThan: of higher priorities, as long as the request is not overdue. AheadAt: of
  // its own priority, see LevelTotals::AheadOf. Estimates: sequences may leave the queue early, and
  // short ones fill up batches.
  BatchShape HigherThan(int priority) const;
  BatchShape AheadAt(int priority, uint64_t client, int64_t tokens) const;

  QueueSnapshot Snapshot() const;
  absl::Time next_deadline() const;  // InfiniteFuture when none
  int64_t tokens() const { return tokens_; }
  int64_t requests() const { return static_cast<int64_t>(by_arrival_.size()); }

 private:
  static constexpr int64_t kClientShare = 8;
  static constexpr int kMaxPassedShort = 8;
  enum class Lengths { kShort, kAll };  // up to a quantum, or any

  struct ArrivalOrder {
    bool operator()(const QueuedRequest* a, const QueuedRequest* b) const;
  };
  struct WaitOrder {
    bool operator()(const QueuedRequest* a, const QueuedRequest* b) const;
  };
  struct DeadlineOrder {
    bool operator()(const QueuedRequest* a, const QueuedRequest* b) const;
  };
  // The requests of one priority.
  struct Level {
    explicit Level(const BatchPolicy& policy) : order(policy.quantum()), totals(policy) {}
    ServiceOrder order;
    LevelTotals totals;
  };
  // A place in the order of service. By default, before all requests.
  struct Position {
    int priority = std::numeric_limits<int>::max();
    ServiceOrder::Position in_level;
  };
  // A batch as it is filled.
  struct Filling {
    absl::Time now;
    std::vector<BatchItem>& batch;
    BatchFill fill;
    bool has_long = false;
    QueuedRequest* owed = nullptr;  // what an earlier batch left out: passed_long_, until its turn
  };

  // Takes overdue sequences for overdue_tokens_, unless `wait`.
  void ServeOverdue(bool wait, Filling& filling);
  // The one that has waited longest; null when it is not overdue.
  QueuedRequest* NextOverdue(absl::Time now) const;
  Level& LevelOf(const QueuedRequest& request);
  // Behind it or, where its turn has not come, behind all of its client's: theirs has not either.
  Position Behind(const QueuedRequest& request);
  // The first one behind this place in the order of service, or null.
  QueuedRequest* Next(const Position& position) const;
  // Gives turns in the order of service until the batch is full; where long sequences may be left
  // out, to those of `lengths` alone. Sets passed_long_.
  void Walk(Lengths lengths, Filling& filling);
  // Lets it take sequences of these lengths within its deficit. Returns whether the next one is
  // within the deficit but does not go into the batch. The request may leave the queue.
  bool Serve(QueuedRequest& request, Lengths lengths, Filling& filling);
  void TakeSequence(QueuedRequest& request, Filling& filling);
  // The first behind it, of its priority or a lower one, whose turn has come and whose long
  // sequence is still there; or null.
  QueuedRequest* NextPassedLong(const QueuedRequest& request);
  void Progress(QueuedRequest& request, absl::Time now);
  // Adds the request's waiting sequences to the totals `sign` times.
  void Count(const QueuedRequest& request, int64_t sign);

  Limits limits_;
  BatchPolicy policy_;
  int64_t tokens_ = 0;     // sum of tokens_waiting
  int64_t sequences_ = 0;  // sum of sequences_waiting()
  int64_t head_ns_ = 0;    // sum of head_ns_waiting
  // Its long sequence was left out of a batch of short ones, and goes before them the next time.
  QueuedRequest* passed_long_ = nullptr;
  int64_t overdue_tokens_ = 0;  // that overdue requests may take, see BatchPolicy::Part
  bool overdue_first_ = false;  // the last batch began with overdue sequences
  absl::btree_map<int, Level, std::greater<int>> levels_;  // by priority; without empty ones
  absl::btree_set<QueuedRequest*, ArrivalOrder> by_arrival_;
  absl::btree_set<QueuedRequest*, WaitOrder> by_wait_;
  absl::btree_set<QueuedRequest*, DeadlineOrder> by_deadline_;
};

}  // namespace attendant
