// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/session.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/attention/attention_plan.h"
#include "kernels/cpu/encoder/cpu_encoder.h"
#include "kernels/cpu/encoder/row_phase.h"

namespace attendant::cpu {

// Runs a CpuEncoder. A layer is two phases with a barrier after each: the rows' (row_phase.h), and
// attention, where a task of the plan is some heads and queries of one sequence.
class CpuSession final : public Session {
 public:
  // Throws std::exception. `encoder` must outlive the session.
  CpuSession(const CpuEncoder& encoder, const SessionLimits& limits, const ThreadTeam& team);

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;
  void PlaceCaller() override { pool_.PlaceCaller(); }
  int64_t arena_bytes() const override { return static_cast<int64_t>(arena_.used_bytes()); }

 private:
  struct AttentionScratch {  // of one thread
    std::byte* attention = nullptr;
    float* weights = nullptr;
  };

  struct Buffers {
    Activations activations;
    TensorView<float, 2> pooled;                      // [max sequences, hidden]
    std::vector<AttentionScratch> attention_scratch;  // [threads]
  };

  Buffers AllocateBuffers(Arena& arena) const;
  void RunAttention(const OutputSpec& spec, int64_t layer);
  void AttendTask(const AttentionTask& task, const AttentionScratch& scratch);
  // For callers who want to see the inside (cpu_session_layers.cc).
  void WriteWeights(const AttentionTask& task, const LayerOutputs& wanted, int64_t layer,
                    const AttentionScratch& scratch);
  void WriteHiddenStates(const PackedBatch& batch, const OutputSpec& spec, int64_t layer);
  void Pool(const PackedBatch& batch, const OutputSpec& spec);

  const CpuEncoder& encoder_;
  const RowKernels& kernels_;
  SessionLimits limits_;
  ThreadPool pool_;
  Arena arena_;
  Buffers buffers_;
  RowPhase row_phase_;
  std::vector<AttentionTask> tasks_;
};

}  // namespace attendant::cpu
