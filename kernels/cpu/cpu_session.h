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
  CpuSession(const CpuEncoder& encoder, const SessionLimits& limits, int threads);

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;

 private:
  struct ThreadState {
    dnnl::stream stream;
    MatmulRunner qkv, attention_output, ffn_up, ffn_down;
    TensorView<float, 2> product;       // [kMaxBlockRows, hidden]
    TensorView<float, 2> intermediate;  // [kMaxBlockRows, ffn]
    float* attention_scratch = nullptr;
    bool failed = false;  // a product failed in this batch
  };

  struct Block {
    int64_t begin = 0;
    int64_t rows = 0;    // real ones
    int64_t padded = 0;  // rounded up for the products
  };

  void AllocateShared(Arena& arena);
  ThreadState MakeThread(Arena& arena) const;
  void RunRows(const PackedBatch& batch, int64_t layer);
  void RunAttention();
  void EmbedBlock(const PackedBatch& batch, const Block& block);
  void FinishLayerBlock(const Block& block, int64_t layer, ThreadState& thread);
  void ProjectQkvBlock(const Block& block, int64_t layer, ThreadState& thread);
  void AttendTask(const AttentionTask& task, ThreadState& thread);
  void Pool(const PackedBatch& batch, const OutputSpec& spec);

  const CpuEncoder& encoder_;
  SessionLimits limits_;
  ThreadPool pool_;
  Arena arena_;
  TensorView<float, 2> states_;   // [max tokens, hidden]
  TensorView<float, 2> qkv_;      // [max tokens, 3 * hidden]
  TensorView<float, 2> context_;  // [max tokens, hidden], the heads' outputs side by side
  TensorView<float, 2> pooled_;   // [max sequences, hidden]
  std::vector<ThreadState> threads_;
  std::vector<AttentionTask> tasks_;
};

}  // namespace attendant::cpu
