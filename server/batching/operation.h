// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/core/threads/thread_pool.h"

namespace attendant {

// A computation that shares a batch with nothing: one worker runs it alone. It owns its input, and
// its result once it has run.
class Operation {
 public:
  virtual ~Operation() = default;

  // What it counts for in the queue; at least 1, always the same.
  virtual int64_t tokens() const = 0;

  // Computes on `pool`. Called at most once. What it throws becomes INTERNAL.
  virtual absl::Status Run(ThreadPool& pool) = 0;
};

}  // namespace attendant
