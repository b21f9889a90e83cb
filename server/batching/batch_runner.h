// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/core/backend.h"
#include "kernels/core/outputs.h"
#include "kernels/core/packed_batch.h"
#include "server/batching/admitted_request.h"

namespace attendant {

// What a worker does with a batch and no lock: packs the sequences, runs the session, and copies
// each result out of the session's memory into its request. Keeps its memory between batches.
// Thread-confined, like its session.
class BatchRunner {
 public:
  // `session` must outlive it.
  explicit BatchRunner(Session& session) : session_(session) {}

  // The session's status; on success every item's SequenceResult is filled. Nothing is thrown: what
  // a session throws, or memory that runs out, becomes INTERNAL. REQUIRES: not empty; nobody else
  // writes the same results meanwhile.
  absl::Status Run(std::span<const BatchItem> items);

  int64_t tokens() const { return batch_.tokens(); }  // of the last batch

 private:
  absl::Status PackAndRun(std::span<const BatchItem> items);
  void CopyResults(std::span<const BatchItem> items, const Outputs& outputs) const;

  Session& session_;
  PackedBatch batch_;
  std::vector<SequenceOutputs> spec_;  // [batch]
};

}  // namespace attendant
