// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/request_queue.h"

namespace attendant {

inline absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

using Items = std::vector<std::pair<RequestId, size_t>>;  // request, sequence

// A queue whose quantum is 10 tokens, and its requests: numbered from 1, arriving a millisecond
// apart, or at `now_` if that is later.
class RequestQueueTest : public testing::Test {
 protected:
  explicit RequestQueueTest(int64_t max_batch_sequences = 5)
      : policy_({.max_batch_tokens = 40,
                 .max_batch_sequences = max_batch_sequences,
                 .max_priority_wait = absl::Milliseconds(100)}) {}

  QueuedRequest& Add(const std::vector<int64_t>& lens, int priority = 0,
                     absl::Time deadline = absl::InfiniteFuture()) {
    QueuedRequest& request = requests_.emplace_back();
    request.id = requests_.size();
    request.arrival = std::max(now_, At(static_cast<int64_t>(request.id)));
    request.priority = priority;
    request.client = client_;
    request.deadline = deadline;
    for (int64_t len : lens) {
      SequenceInput& sequence = request.encode().sequences.emplace_back();
      sequence.token_ids.resize(static_cast<size_t>(len));
      sequence.head_ns = kHeadNs * len;
    }
    request.head_ns_waiting = request.head_ns();
    request.tokens_waiting = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    queue_.Add(request);
    return request;
  }

  Items Take(absl::Time now = At(0)) {
    std::vector<BatchItem> batch;
    queue_.TakeBatch(now, batch);
    Items items;
    for (const BatchItem& item : batch) items.emplace_back(item.request->id, item.sequence);
    return items;
  }

  static constexpr int64_t kHeadNs = 7;  // of a token

  const BatchPolicy policy_;
  RequestQueue queue_{{.max_tokens = 200, .max_requests = 9}, policy_};
  std::deque<QueuedRequest> requests_;
  absl::Time now_ = At(0);
  uint64_t client_ = 0;  // of requests that are added
};

}  // namespace attendant
