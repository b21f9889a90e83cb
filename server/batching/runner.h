// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "server/batching/request.h"

namespace attendant {

// Computes the batches of one worker, without the batcher's lock. Thread-confined.
class Runner {
 public:
  virtual ~Runner() = default;

  // Called once by the thread that will call Run.
  virtual void OnWorkerStart() {}

  // On success every item's result is in its request. Nothing is thrown: an exception of a kernel,
  // or memory that runs out, becomes INTERNAL. UNAVAILABLE: the runner's device is lost, and Run
  // must not be called again. REQUIRES: `items` is not empty and of the kind that this runner
  // takes.
  virtual absl::Status Run(std::span<const BatchItem> items) = 0;
};

}  // namespace attendant
