// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/session.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/attention/attention_plan.h"
#include "kernels/cpu/encoder/cpu_encoder.h"
#include "kernels/cpu/encoder/layer_runner.h"

namespace attendant::cpu {

// Runs a CpuEncoder: its layers by a LayerRunner, with an attention whose pieces are some heads and
// queries of one sequence each.
class CpuSession final : public Session {
 public:
  // Throws std::exception. `encoder` must outlive the session.
  CpuSession(const CpuEncoder& encoder, const SessionLimits& limits, const ThreadTeam& team);

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;
  void PlaceCaller() override { pool_.PlaceCaller(); }
  void StopWhen(const std::atomic<bool>* stop) override { pool_.StopWhen(stop); }
  int64_t arena_bytes() const override { return static_cast<int64_t>(arena_.used_bytes()); }

 private:
  struct AttentionScratch {  // of one thread
    std::byte* attention = nullptr;
    float* weights = nullptr;
  };

  struct Buffers {
    Activations activations;
    TensorView<float, 2> pooled;                      // [max sequences, hidden]
    AttentionPlan plan;                               // of the running batch
    std::vector<AttentionScratch> attention_scratch;  // [threads]
  };

  Buffers AllocateBuffers(Arena& arena) const;
  // states = norm(token + segment + position)
  void Embed(const PackedBatch& batch, int64_t row, float* states, float* scratch) const;
  void RunAttention(const PackedBatch& batch, const OutputSpec& spec, int64_t layer);
  // `first_row` is the first row of the sequence in the batch.
  AttentionArgs ArgsOf(const AttentionPiece& piece, int64_t head, int64_t first_row) const;
  void Attend(const AttentionPiece& piece, int64_t first_row, const AttentionScratch& scratch);
  void WriteWeights(const AttentionPiece& piece, const LayerOutputs& wanted, int64_t first_row,
                    int64_t layer, const AttentionScratch& scratch);
  void WriteHiddenStates(const PackedBatch& batch, const OutputSpec& spec, int64_t layer);
  void Pool(const PackedBatch& batch, const OutputSpec& spec);

  const CpuEncoder& encoder_;
  const RowKernels& kernels_;
  SessionLimits limits_;
  ThreadPool pool_;
  Arena arena_;
  Buffers buffers_;
  LayerRunner runner_;
};

}  // namespace attendant::cpu
