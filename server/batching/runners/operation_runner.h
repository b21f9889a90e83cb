// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>

#include "absl/status/status.h"
#include "kernels/core/threads/thread_pool.h"
#include "server/batching/runners/runner.h"

namespace attendant {

// Runs operations, one after the other, on threads of its own.
class OperationRunner final : public Runner {
 public:
  // `team`: the worker's thread included. Its threads give way to others: their niceness is by
  // `nice`, 0 to 19, above that of the process.
  explicit OperationRunner(const ThreadTeam& team, int nice = 0);

  void OnWorkerStart() override;
  void StopWhen(const std::atomic<bool>* stop) override { pool_.StopWhen(stop); }
  absl::Status Run(std::span<const BatchItem> items) override;

 private:
  const int nice_;
  ThreadPool pool_;
};

}  // namespace attendant
