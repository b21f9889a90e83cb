// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/session.h"
#include "kernels/core/shape.h"
#include "kernels/core/threads/thread_pool.h"

namespace attendant {

// The outputs of heads, from a sequence's last hidden states. Each is a HeadResult:
enum class TaskKind : uint8_t {
  kSparse,       // a weight for some ids of the vocabulary: indices [n] ascending, values [n]
  kFillMask,     // the likeliest ids at each mask: indices and values [masks, k], tokens [masks]
  kTokenScores,  // a score of each label for each token: values [len, labels]
  kMultiVector,  // a vector for each token that counts: values [n, dims], tokens [n]
};
inline constexpr int kNumTaskKinds = 4;

absl::string_view TaskName(TaskKind kind);  // "sparse", "fill_mask", ...

// The request for an output of a head. A head reads the fields that concern it.
struct TaskOptions {
  TaskKind kind = TaskKind::kSparse;
  // kSparse: at most so many weights, the largest; 0: all above zero.
  // kFillMask: so many ids for each mask; 0: kDefaultPredictions.
  int64_t top_k = 0;
  bool raw = false;       // kFillMask, kTokenScores: logits, instead of probabilities
  bool document = false;  // kMultiVector: ids that the head ignores in documents have no vector
};
inline constexpr int64_t kDefaultPredictions = 5;

struct HeadResult {
  std::vector<int32_t> indices;
  std::vector<float> values;
  std::vector<int32_t> tokens;  // from 0, ascending
};

// A sequence of a batch, and where its result goes. Masked tokens are left out.
struct HeadInput {
  const TaskOptions* options = nullptr;
  std::span<const int32_t> token_ids;  // [len]
  TensorView<const float, 2> states;   // [len, hidden]
  HeadResult* result = nullptr;
};

// The state of one worker that runs a head. Thread-confined. The head must outlive it.
class HeadRunner {
 public:
  virtual ~HeadRunner() = default;

  // Fills every result. A result has the same bits whatever else is in `inputs` and however many
  // threads `pool` has. Allocates results alone, on the calling thread: std::bad_alloc. INTERNAL
  // when a kernel fails. REQUIRES: the inputs ask for one kind, which the head makes; they have no
  // more tokens than the limits say; `pool` has as many threads as the runner was made for.
  virtual absl::Status Run(std::span<const HeadInput> inputs, ThreadPool& pool) = 0;

  virtual int64_t arena_bytes() const = 0;
};

// Makes outputs of one kind or several from hidden states. Immutable, thread-safe.
class Head {
 public:
  virtual ~Head() = default;

  virtual bool Makes(TaskKind kind) const = 0;

  // The size of the answer to a sequence of these tokens, at most.
  struct ResultSize {
    int64_t values = 0;   // with an index each, where the kind has them
    int64_t columns = 0;  // of a row: labels, dims or predictions; 0 for kSparse
  };
  virtual ResultSize MaxResult(const TaskOptions& options,
                               std::span<const int32_t> token_ids) const = 0;

  // A runner for `threads` threads. All its memory is allocated before NewRunner returns.
  // RESOURCE_EXHAUSTED when it does not fit; INTERNAL when a library fails.
  virtual absl::StatusOr<std::unique_ptr<HeadRunner>> NewRunner(const SessionLimits& limits,
                                                                int threads) const = 0;

  virtual int64_t weight_bytes() const = 0;
};

}  // namespace attendant
