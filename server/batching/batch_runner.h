// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/core/backend.h"
#include "kernels/core/outputs.h"
#include "kernels/core/packed_batch.h"
#include "server/batching/request.h"
#include "server/batching/runner.h"

namespace attendant {

// Runs sequences together: packs them, runs the session, and copies each result out of the
// session's memory into its request. Attention weights and hidden states of layers get their memory
// here, when the request's batch starts. Keeps its own memory between batches.
class BatchRunner final : public Runner {
 public:
  explicit BatchRunner(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  void OnWorkerStart() override { session_->PlaceCaller(); }
  void StopWhen(const std::atomic<bool>* stop) override { session_->StopWhen(stop); }

  // The session's status; on success every item's SequenceResult is filled.
  absl::Status Run(std::span<const BatchItem> items) override;

 private:
  absl::Status PackAndRun(std::span<const BatchItem> items);
  void CopyResults(std::span<const BatchItem> items, const Outputs& outputs) const;

  const std::unique_ptr<Session> session_;
  PackedBatch batch_;
  std::vector<SequenceOutputs> outputs_;  // [batch]
  std::vector<LayerOutputs> layers_;      // [batch]
};

}  // namespace attendant
