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
#include "kernels/core/threads/thread_pool.h"
#include "kernels/heads/head.h"
#include "server/batching/queued_request.h"
#include "server/batching/runners/runner.h"

namespace attendant {

// Runs sequences together: packs them, runs the session, pools what the session cannot, and copies
// each result out of the session's memory into its request. Attention weights and hidden states of
// layers get their memory here, when the request's batch starts. Then the heads run on the states,
// each once for all sequences of the batch that ask for one kind of output. Keeps its own memory
// between batches.
class BatchRunner final : public Runner {
 public:
  using HeadRunners = std::vector<std::unique_ptr<HeadRunner>>;  // in the order of the model's

  // REQUIRES: `heads` are made for the session's limits and for HeadThreads(*session).
  explicit BatchRunner(std::unique_ptr<Session> session, HeadRunners heads = {});

  // The threads that heads run on: the session's, or the caller's alone.
  static int HeadThreads(Session& session);

  void OnWorkerStart() override { session_->PlaceCaller(); }
  void StopWhen(const std::atomic<bool>* stop) override { session_->StopWhen(stop); }

  // The session's status; on success every item's SequenceResult is filled.
  absl::Status Run(std::span<const BatchItem> items) override;

 private:
  absl::Status PackAndRun(std::span<const BatchItem> items);
  void CopyResults(std::span<const BatchItem> items, const Outputs& outputs) const;
  absl::Status RunHeads(std::span<const BatchItem> items, const Outputs& outputs);
  // The inputs of `head` for results of `kind`.
  void FindInputs(std::span<const BatchItem> items, const Outputs& outputs, size_t head,
                  TaskKind kind);

  const std::unique_ptr<Session> session_;
  const HeadRunners heads_;
  ThreadPool own_pool_{1};  // of a session that has none
  ThreadPool& pool_;
  PackedBatch batch_;
  std::vector<SequenceOutputs> outputs_;  // [batch]
  std::vector<LayerOutputs> layers_;      // [batch]
  std::vector<HeadInput> inputs_;         // of the head that runs
};

}  // namespace attendant
