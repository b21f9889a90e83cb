// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>

#include "absl/status/status.h"
#include "kernels/core/threads/thread_pool.h"
#include "server/batching/runner.h"

namespace attendant {

// Runs operations, one after the other, on threads of its own.
class OperationRunner final : public Runner {
 public:
  // `team`: the worker's thread included.
  explicit OperationRunner(const ThreadTeam& team) : pool_(team) {}

  void OnWorkerStart() override { pool_.PlaceCaller(); }
  void StopWhen(const std::atomic<bool>* stop) override { pool_.StopWhen(stop); }
  absl::Status Run(std::span<const BatchItem> items) override;

 private:
  ThreadPool pool_;
};

}  // namespace attendant
