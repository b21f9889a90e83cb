// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/session.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/attention/attention_plan.h"
#include "kernels/cpu/encoder/cpu_encoder.h"
#include "kernels/cpu/encoder/last_rows.h"
#include "kernels/cpu/encoder/layer_runner.h"

namespace attendant::cpu {

// Runs a CpuEncoder: its layers by a LayerRunner, with an attention whose pieces are some heads and
// queries of one sequence each. A large batch goes through all layers section by section.
class CpuSession final : public Session {
 public:
  // Throws std::exception. `encoder` must outlive the session.
  CpuSession(const CpuEncoder& encoder, const SessionLimits& limits, const ThreadTeam& team);

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;
  void PlaceCaller() override { pool_.PlaceCaller(); }
  void StopWhen(const std::atomic<bool>* stop) override { pool_.StopWhen(stop); }
  ThreadPool* pool() override { return &pool_; }
  int64_t arena_bytes() const override { return static_cast<int64_t>(arena_.used_bytes()); }

 private:
  struct AttentionScratch {  // of one thread
    std::byte* attention = nullptr;
    std::byte* weights = nullptr;
    float* bias = nullptr;  // [bias_queries(), max len], of an encoder that looks at distances
    DisentangledScores::Scratch disentangled{};
  };

  // Sequences [begin, end) of a batch, which lie in `tokens` rows from `first_row` on.
  struct Section {
    int64_t begin = 0, end = 0;
    int64_t first_row = 0, tokens = 0;
  };

  // A piece of a layer's attention.
  struct Task {
    const AttentionPiece& piece;
    const AttentionScratch& scratch;
    int64_t layer;
    int64_t first_row;                   // of the sequence in the section
    std::span<const int32_t> positions;  // of its tokens
    bool gaps;  // the layer looks at distances, and the positions do not follow one another
  };

  struct Buffers {
    TensorView<float, 2> states;                      // [max tokens, hidden]
    Activations activations;                          // of the running section
    TensorView<float, 2> pooled;                      // [max sequences, hidden]
    float* token_scales;                              // [max tokens] of a dropped_token, or null
    AttentionPlan plan;                               // of the running layer of the section
    std::vector<AttentionScratch> attention_scratch;  // [threads]
  };

  Buffers AllocateBuffers(Arena& arena) const;
  // input [input_width] = norm(token + segment + position)
  void Embed(const PackedBatch& batch, int64_t row, float* input, float* scratch) const;
  int64_t section_tokens() const;
  Section NextSection(const PackedBatch& batch, const Section& last, int64_t tokens) const;
  absl::Status RunSection(const PackedBatch& batch, const OutputSpec& spec, const Section& section);
  template <typename Queries>
  void PlanAttention(const PackedBatch& batch, const Section& section, Queries queries);
  int64_t context_value_bytes() const;
  void RunAttention(const PackedBatch& batch, const OutputSpec& spec, const Section& section,
                    int64_t layer);
  AttentionArgs ArgsOf(const Task& task, int64_t head) const;
  int64_t bias_queries() const;
  bool has_disentangled() const { return !encoder_.disentangled_scores().empty(); }
  template <typename Body>
  void ForQueries(const Task& task, int64_t head, Body body) const;
  void Attend(const Task& task);
  void WriteWeights(const Task& task, const LayerOutputs& wanted);
  void WriteHiddenStates(const PackedBatch& batch, const OutputSpec& spec, const Section& section,
                         int64_t layer);
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
