// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace attendant {

// Most batches of one request that its trace shows: the first ones.
inline constexpr size_t kMaxTracedBatches = 32;

// A batch, as the traces of its requests tell of it.
struct TracedBatch {
  uint64_t id = 0;    // the same in all its requests, and in no other batch: BatchIds
  bool told = false;  // in the trace of one of them: that one has the batch's span, others its link
  int64_t worker = 0;
  int64_t tokens = 0, sequences = 0, requests = 0;
  absl::Time start = {};  // of the steady clock
  absl::Duration compute = {};
};

}  // namespace attendant
