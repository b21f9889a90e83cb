// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>

#include "absl/status/status.h"
#include "server/batching/queued_request.h"

namespace attendant {

// Computes the batches of one worker, without the batcher's lock. Thread-confined.
class Runner {
 public:
  virtual ~Runner() = default;

  // Called once by the thread that will call Run.
  virtual void OnWorkerStart() {}

  // Lets Run end early while `*stop` is true, with undefined results. Called once, before Run;
  // `stop` outlives the last Run.
  virtual void StopWhen(const std::atomic<bool>* stop) = 0;

  // On success every item's result is in its request. Nothing is thrown: an exception of a kernel,
  // or memory that runs out, becomes INTERNAL. UNAVAILABLE: the runner's device is lost, and Run
  // must not be called again. REQUIRES: `items` is not empty and of the kind that this runner
  // takes.
  virtual absl::Status Run(std::span<const BatchItem> items) = 0;
};

}  // namespace attendant
