// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batch_policy.h"
#include "server/batching/request.h"

namespace attendant {

// The requests with sequences that wait for a batch, in the order of service: higher priority
// first, then by arrival. (Lower priorities wait as long as higher ones keep every worker busy;
// their deadlines bound that.) Bounded by tokens and by requests. Owns nothing; reads no clock.
// Every operation is O(log requests) for each request it returns, adds or removes.
// Thread-compatible.
class RequestQueue {
 public:
  struct Limits {
    int64_t max_tokens = 0;
    int64_t max_requests = 0;
  };

  explicit RequestQueue(const Limits& limits);

  // OK when a request of `tokens` fits in beside what waits; else RESOURCE_EXHAUSTED with both
  // numbers.
  absl::Status CheckRoom(int64_t tokens) const;

  // REQUIRES: CheckRoom(request.tokens_waiting) is OK; it lives until it has left the queue; its id
  // is above every earlier one's.
  void Add(PendingRequest& request);

  // Takes it out with all its waiting sequences; nothing happens when it is not queued.
  void Remove(PendingRequest& request);

  // Takes out and returns every request whose deadline is not after `now`.
  std::vector<PendingRequest*> TakeExpired(absl::Time now);

  // Moves sequences from the front to `batch` as long as they fit. A request leaves the queue with
  // its last sequence; until then the rest of it keeps its place at the front.
  void TakeBatch(const BatchPolicy& policy, std::vector<BatchItem>& batch);

  QueueSnapshot Snapshot() const;
  absl::Time next_deadline() const;  // InfiniteFuture when none
  int64_t tokens() const { return tokens_; }
  int64_t requests() const { return static_cast<int64_t>(by_service_.size()); }
  PendingRequest* front() const;  // null when empty

 private:
  struct ServiceOrder {
    bool operator()(const PendingRequest* a, const PendingRequest* b) const;
  };
  struct ArrivalOrder {
    bool operator()(const PendingRequest* a, const PendingRequest* b) const;
  };
  struct DeadlineOrder {
    bool operator()(const PendingRequest* a, const PendingRequest* b) const;
  };

  void TakeSequence(PendingRequest& request, std::vector<BatchItem>& batch);

  Limits limits_;
  int64_t tokens_ = 0;     // sum of tokens_waiting
  int64_t sequences_ = 0;  // sum of sequences_waiting()
  absl::btree_set<PendingRequest*, ServiceOrder> by_service_;
  absl::btree_set<PendingRequest*, ArrivalOrder> by_arrival_;
  absl::btree_set<PendingRequest*, DeadlineOrder> by_deadline_;
};

}  // namespace attendant
