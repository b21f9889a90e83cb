// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/core/outputs.h"
#include "server/batching/operation.h"

namespace attendant {

// One sequence, masked tokens already left out; it passed ValidateSequence.
struct SequenceInput {
  std::vector<int32_t> token_ids;    // [len]
  std::vector<int32_t> positions;    // [len]
  std::vector<int32_t> segment_ids;  // [len]

  int64_t len() const { return static_cast<int64_t>(token_ids.size()); }
};

// What a request asks for from inside the encoder, for each of its sequences; LayerOutputs says
// what the numbers stand for.
struct LayerSelection {
  std::vector<int32_t> attention_layers;
  std::vector<int32_t> attention_heads;
  std::vector<int32_t> hidden_layers;
  int64_t hidden = 0;  // of the model

  bool empty() const { return attention_layers.empty() && hidden_layers.empty(); }
  int64_t attention_maps() const {  // [len, len] each
    return static_cast<int64_t>(attention_layers.size() * attention_heads.size());
  }
  int64_t hidden_values(int64_t len) const {
    return static_cast<int64_t>(hidden_layers.size()) * len * hidden;
  }
};

// What was not asked for is empty.
struct SequenceResult {
  std::vector<float> last_hidden_state;  // [len, hidden]
  std::vector<float> pooled;             // [dims]
  std::vector<float> attention_weights;  // [attention_layers, attention_heads, len, len]
  std::vector<float> hidden_states;      // [hidden_layers, len, hidden]
};

struct RequestResult {
  std::vector<SequenceResult> sequences;  // in the request's order
  std::unique_ptr<Operation> operation;   // the request's own, which has run
  absl::Duration queue;                   // from Submit until the last sequence entered a batch
  absl::Duration compute;                 // summed over the batches its sequences went into
};

// A unit of admission, cancellation and completion: several sequences that are answered together,
// and may run in different batches; or one operation.
struct PendingRequest {
  std::vector<SequenceInput> sequences;  // empty with an operation, and only then
  SequenceOutputs outputs;               // the same for all of them
  LayerSelection layers;                 // likewise
  // Kept until it has run, even when the request is cancelled.
  std::unique_ptr<Operation> operation;
  absl::Time deadline = absl::InfiniteFuture();
  int priority = 0;  // higher first
  // Called exactly once: with the result, or with RESOURCE_EXHAUSTED (queue full), INVALID_ARGUMENT
  // (could never fit), DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE (draining) or INTERNAL (kernel).
  absl::AnyInvocable<void(absl::StatusOr<RequestResult>)> done;
};

}  // namespace attendant
