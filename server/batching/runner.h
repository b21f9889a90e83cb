// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "kernels/core/threads/thread_pool.h"
#include "server/batching/admitted_request.h"

namespace attendant {

// What a worker does with a batch and no lock. Thread-confined.
class Runner {
 public:
  virtual ~Runner() = default;

  // Called once by the thread that will call Run.
  virtual void OnWorkerStart() {}

  // On success every item's result is where its request keeps it. Nothing is thrown: what a kernel
  // throws, or memory that runs out, becomes INTERNAL. UNAVAILABLE: its device is lost, and it is
  // not to be asked again. REQUIRES: not empty; the items are of the kind that this runner is for.
  virtual absl::Status Run(std::span<const BatchItem> items) = 0;
};

// Runs operations, one after the other, on threads of its own.
class OperationRunner final : public Runner {
 public:
  // `team`: the worker's thread included.
  explicit OperationRunner(const ThreadTeam& team) : pool_(team) {}

  void OnWorkerStart() override { pool_.PlaceCaller(); }
  absl::Status Run(std::span<const BatchItem> items) override;

 private:
  ThreadPool pool_;
};

}  // namespace attendant
