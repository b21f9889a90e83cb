// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/backend.h"
#include "kernels/core/thread_pool.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/cpu_encoder.h"

namespace attendant::cpu {

// Runs a CpuEncoder. A layer is two phases with a barrier after each:
//   rows       per block of rows: attention output -> LayerNorm -> feed-forward -> LayerNorm ->
//   next qkv attention  per task of the plan: some heads and queries of one sequence
class CpuSession final : public Session {
 public:
  // Throws dnnl::error or std::bad_alloc. `encoder` must outlive the session.
  CpuSession(const CpuEncoder& encoder, const SessionLimits& limits, const ThreadTeam& team);

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;
  void PlaceCaller() override { pool_.PlaceCaller(); }
  int64_t arena_bytes() const override { return static_cast<int64_t>(arena_.used_bytes()); }

 private:
  // Rows of one block in the number format that products read; in f32 they lie elsewhere.
  struct Operand {
    std::byte* values = nullptr;
    int64_t row_bytes = 0;
    RowQuantization* quantization = nullptr;  // int8 only

    OperandRow row(int64_t index) const {
      return {values + index * row_bytes, quantization == nullptr ? nullptr : quantization + index};
    }
  };

  struct ThreadState {
    dnnl::stream stream;
    MatmulRunner qkv, attention_output, ffn_up, ffn_down;
    TensorView<float, 2> product;       // [kMaxBlockRows, hidden], or s32
    TensorView<float, 2> wide_product;  // [kMaxBlockRows, max(ffn, 3 * hidden)], or s32
    Operand states;                     // [kMaxBlockRows, hidden]
    Operand intermediate;               // [kMaxBlockRows, ffn]
    float* row_scratch = nullptr;       // [ffn]
    std::byte* attention_scratch = nullptr;
    float* weights_scratch = nullptr;
    bool failed = false;  // a product failed in this batch
  };

  struct Block {
    int64_t begin = 0;
    int64_t rows = 0;    // real ones
    int64_t padded = 0;  // rounded up for the products
  };

  void AllocateShared(Arena& arena);
  ThreadState MakeThread(Arena& arena) const;
  Operand AllocateOperand(Arena& arena, int64_t columns) const;
  void RunRows(const PackedBatch& batch, int64_t layer);
  void RunAttention(const OutputSpec& spec, int64_t layer);
  void EmbedBlock(const PackedBatch& batch, const Block& block, ThreadState& thread);
  void FinishLayerBlock(const Block& block, int64_t layer, ThreadState& thread);
  void AddAttentionBlock(const Block& block, const PackedLayer& weights, ThreadState& thread);
  void FeedForwardBlock(const Block& block, const PackedLayer& weights, ThreadState& thread);
  void NormalizeBlock(const Block& block, const PackedLinear& linear, const Operand& operand,
                      const LayerNormArgs& norm, ThreadState& thread);
  Operand ContextOperand(const Block& block, ThreadState& thread);
  Operand StatesOperand(const Block& block, ThreadState& thread);
  void ProjectQkvBlock(const Block& block, int64_t layer, ThreadState& thread);
  void AttendTask(const AttentionTask& task, ThreadState& thread);
  // For callers who want to see the inside (cpu_session_layers.cc).
  void WriteWeights(const AttentionTask& task, const LayerOutputs& wanted, int64_t layer,
                    ThreadState& thread);
  void WriteHiddenStates(const PackedBatch& batch, const OutputSpec& spec, int64_t layer);
  void Pool(const PackedBatch& batch, const OutputSpec& spec);

  const CpuEncoder& encoder_;
  const RowKernels& kernels_;
  DType dtype_;
  int64_t qkv_bytes_;  // of one value
  SessionLimits limits_;
  ThreadPool pool_;
  Arena arena_;
  TensorView<float, 2> states_;   // [max tokens, hidden]
  TensorView<std::byte, 2> qkv_;  // [max tokens, 3 * hidden values of qkv_bytes_]
  TensorView<float, 2>
      context_;  // [max tokens, hidden], the heads' outputs side by side; bf16 in bf16
  TensorView<float, 2> pooled_;  // [max sequences, hidden]
  std::vector<ThreadState> threads_;
  std::vector<AttentionTask> tasks_;
};

}  // namespace attendant::cpu
