// SPDX-License-Identifier: Apache-2.0
// The batchers and requests of a Scenario, for its own sources only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/session.h"
#include "tests/server/batching/simulation/scenario.h"

namespace attendant {

// Turns that pass before a thread that may go on does.
inline constexpr absl::Duration kSlack = absl::Microseconds(50);

// A sequence's tokens tell whose it is.
inline constexpr int64_t kMaxSequences = 8;
inline int32_t TokenOf(int64_t request, size_t sequence) {
  return static_cast<int32_t>(request * kMaxSequences + static_cast<int64_t>(sequence));
}

// A batch takes about 20 us, and 20 us for each token.
CostModel FittedCost();

template <typename... Parts>
void Scenario::Fail(const Parts&... parts) {
  if (failure_.empty()) failure_ = absl::StrCat(parts...);
}

template <typename... Parts>
void Scenario::Trace(const Parts&... parts) {
  absl::StrAppend(&trace_, absl::ToInt64Nanoseconds(threading_.Now() - absl::UnixEpoch()), " ",
                  parts..., "\n");
}

struct Scenario::Life {
  explicit Life(const BatcherOptions& batcher_options) : options(batcher_options) {}

  bool shares() const { return !options.slots.empty(); }

  const BatcherOptions options;
  int64_t workers = 0;
  std::unique_ptr<Observer> observer;
  std::unique_ptr<Batcher> batcher;  // null once it is destroyed
  int64_t calls = 0;                 // of clients, inside the batcher
  bool stopping = false;
  absl::Time drained = absl::InfiniteFuture();  // Drain has returned
  absl::Time drain_began, drain_deadline;
  absl::Time last_posted = absl::InfinitePast();  // the last completion before that
  absl::Time batch_end;                           // of a batch that began a while ago
  std::array<bool, kMaxWorkers> busy{};           // inside their session, or lost
  int64_t lost = 0;                               // workers
  int told_lost = 0;
  int told_stalled = 0;
};

struct Scenario::Request {
  // Of one sequence.
  struct Run {
    int64_t times = 0;
    absl::Time start;
    absl::Duration duration;
    int64_t batch = 0;
    absl::StatusCode verdict = absl::StatusCode::kUnknown;  // not known yet
    bool abandoned = false;                                 // the batch, when it ended
  };

  Request(int64_t request_index, std::shared_ptr<Life> request_life)
      : index(request_index), life(std::move(request_life)) {}

  int64_t tokens() const {
    int64_t sum = 0;
    for (const int64_t len : lens) sum += len;
    return sum;
  }
  bool too_large() const;
  // By what the observer knows.
  bool finds_queue_full() const;
  // Whether its client may have more than its part of the queue: requests that are about to end
  // count here, and may have left the queue.
  bool client_may_be_full(const std::vector<std::shared_ptr<Request>>& all) const;
  bool has_run(absl::StatusCode verdict) const;

  const int64_t index;
  const std::shared_ptr<Life> life;
  uint64_t client = 0;
  std::vector<int64_t> lens;
  std::vector<Run> runs;  // of each sequence
  RequestId id = 0;
  absl::Time arrival;
  bool queue_was_full = false;   // on arrival
  bool client_was_full = false;  // likewise, and perhaps
  absl::Time deadline = absl::InfiniteFuture();
  absl::Time cancelled = absl::InfiniteFuture();  // when Cancel was called
  size_t next_run = 0;                            // with one worker: the next of its sequences
  int64_t answers = 0;
  absl::StatusCode code = absl::StatusCode::kUnknown;
};

// A session whose batches take time and fail.
class Scenario::Worker final : public Session {
 public:
  Worker(Scenario& scenario, Life& life, size_t index)
      : scenario_(scenario), life_(life), index_(index) {}
  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;
  void StopWhen(const std::atomic<bool>* stop) override { stop_ = stop; }

 private:
  std::vector<Request::Run*> Begin(const PackedBatch& batch);
  void BeginCompute();
  void EndCompute();
  void Compute(const PackedBatch& batch, Outputs& outputs);
  void CheckAbandoned(const PackedBatch& batch);
  Request& RequestOf(const PackedBatch& batch, int64_t i) const;
  absl::Status ChooseVerdict();

  Scenario& scenario_;
  Life& life_;
  const std::atomic<bool>* stop_ = nullptr;
  const size_t index_;
  bool lost_ = false;
  std::vector<float> pooled_;  // [batch, 2]
};

using RejectCounts = std::array<int64_t, static_cast<size_t>(RejectReason::kEnd)>;

class Scenario::Observer final : public BatchObserver {
 public:
  void OnBatch(int64_t, int64_t batch_sequences, int64_t, absl::Duration) override {
    sequences += batch_sequences;
  }
  void OnRejected(RejectReason reason) override { ++rejected[static_cast<size_t>(reason)]; }
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override {
    tokens = queued_tokens;
    requests = queued_requests;
  }
  void OnStalled(int workers) override { stalled = workers; }
  void OnLost(int) override {}

  int64_t sequences = 0;  // computed
  RejectCounts rejected{};
  int64_t tokens = 0, requests = 0;  // queued
  int stalled = 0;
};

}  // namespace attendant
