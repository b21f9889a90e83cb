// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/core/outputs.h"
#include "kernels/core/pooling.h"
#include "kernels/heads/head.h"
#include "server/tracing/traced_batch.h"

namespace attendant {

class ThreadPool;

// One sequence, masked tokens already left out; it passed ValidateSequence.
struct SequenceInput {
  std::vector<int32_t> token_ids;    // [len]
  std::vector<int32_t> positions;    // [len]
  std::vector<int32_t> segment_ids;  // [len]
  int32_t first_pooled = 0;          // token_poolings leave out the tokens at positions before it
  int32_t keys = 0;                  // tokens attend to the first ones alone; 0: to all
  int32_t only_task = -1;            // of EncodeWork::tasks, the one that it has; below 0: all
  std::vector<TokenSpan> spans{};    // token_poolings pool each of them alone; empty: all tokens
  int64_t head_ns = 0;               // that heads take for its tasks, as measured

  int64_t len() const { return static_cast<int64_t>(token_ids.size()); }
};

// The layers and heads whose attention weights are computed for each sequence of a request, and the
// layers whose hidden states are: an empty list means none. LayerOutputs explains the numbers.
struct LayerSelection {
  std::vector<int32_t> attention_layers;
  std::vector<int32_t> attention_heads;
  std::vector<int32_t> hidden_layers;
  int64_t attention_queries = 0;  // as LayerOutputs

  bool empty() const { return attention_layers.empty() && hidden_layers.empty(); }
  int64_t attention_maps() const {  // [queries, len] each
    return static_cast<int64_t>(attention_layers.size() * attention_heads.size());
  }
  int64_t attention_values(int64_t len) const {
    return attention_maps() * (attention_queries > 0 ? std::min(attention_queries, len) : len) *
           len;
  }
  int64_t hidden_values(int64_t len, int64_t hidden) const {
    return static_cast<int64_t>(hidden_layers.size()) * len * hidden;
  }
};

// True if a request that is cancelled `now` ends by its deadline: gRPC cancels a call when that
// passes, and the client's clock may reach it a little before this one does.
inline bool EndsByDeadline(absl::Time deadline, absl::Time now) {
  constexpr absl::Duration kClocksDiffer = absl::Milliseconds(10);
  return deadline <= now + kClocksDiffer;
}

// An output that a head of the model makes.
struct HeadTask {
  size_t head = 0;  // its place among the model's heads
  TaskOptions options;
};

// Outputs that the request did not ask for are empty.
struct SequenceResult {
  std::vector<float> last_hidden_state;  // [len, hidden]
  std::vector<float> pooled;             // [dims], or [1 or spans, token_poolings, hidden]
  std::vector<float> attention_weights;  // [attention_layers, attention_heads, queries, len]
  std::vector<float> hidden_states;      // [hidden_layers, len, hidden]
  std::vector<HeadResult> tasks;         // of EncodeWork::tasks
};

// Sequences to encode. They are answered together, and may run in different batches.
struct EncodeWork {
  std::vector<SequenceInput> sequences;
  SequenceOutputs outputs;  // the same for all sequences
  // Poolings of the runner (PoolTokens, PoolSpan) instead of the back end's. REQUIRES: if not
  // empty, outputs.pooling is kNone.
  std::vector<Pooling> token_poolings;
  LayerSelection layers;  // the same for all sequences
  int64_t hidden = 0;     // of the model; REQUIRES: set if `layers` has hidden_layers
  // The tasks of heads on tokens, the same for all sequences except those with an only_task. At
  // most one of each kind.
  std::vector<HeadTask> tasks;
  std::vector<SequenceResult> results{};  // [sequences] from Submit on
};

// A computation that a worker runs alone, never in a batch with others. It owns its input and, once
// it has run, its result.
class Operation {
 public:
  virtual ~Operation() = default;

  // The tokens that it computes, for metrics.
  virtual int64_t tokens() const = 0;

  // Its size in the queue and in the cost model, proportional to the time that it takes. All
  // operations of a batcher and its limits have one unit. At least 1, always the same.
  virtual int64_t cost() const = 0;

  // Computes on `pool`. Called at most once. An exception ends the request with INTERNAL.
  virtual absl::Status Run(ThreadPool& pool) = 0;
};

// The work of a request, and its results once it has run. The kind decides which runners can take
// it.
using Work = std::variant<EncodeWork, std::unique_ptr<Operation>>;

// A request's work with its results, and the time that it took.
struct FinishedWork {
  Work work;
  absl::Duration queue;    // from Submit until the last sequence entered a batch
  absl::Duration compute;  // sum over the batches that held its sequences
};

// Work as it is submitted: a unit of admission, cancellation and completion.
struct WorkRequest {
  Work work;  // kept until it has run, even when the request is cancelled
  absl::Time deadline = absl::InfiniteFuture();  // of the steady clock
  int priority = 0;                              // higher first
  uint64_t client = 0;  // requests of one client share its turns, and its part of the queue
  // For a traced request: the list of its first kMaxTracedBatches batches, filled also if the
  // request fails later, and valid until `done` is called. `trace` is a number that no other
  // request has.
  std::vector<TracedBatch>* batches = nullptr;
  uint64_t trace = 0;
  // Called exactly once: with the work, or with RESOURCE_EXHAUSTED (queue full), INVALID_ARGUMENT
  // (could never fit), DEADLINE_EXCEEDED (also: cannot be met), CANCELLED, UNAVAILABLE (draining)
  // or INTERNAL (kernel).
  absl::AnyInvocable<void(absl::StatusOr<FinishedWork>)> done;

  // REQUIRES: `work` is of that kind.
  EncodeWork& encode() { return std::get<EncodeWork>(work); }
  const EncodeWork& encode() const { return std::get<EncodeWork>(work); }
  Operation& operation() const { return *std::get<std::unique_ptr<Operation>>(work); }

  bool is_operation() const { return std::holds_alternative<std::unique_ptr<Operation>>(work); }
};

}  // namespace attendant
