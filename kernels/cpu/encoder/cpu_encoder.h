// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/cpu/encoder/disentangled_scores.h"
#include "kernels/cpu/encoder/embedding_table.h"
#include "kernels/cpu/encoder/packed_layers.h"
#include "kernels/cpu/encoder/relative_scores.h"

namespace attendant::cpu {

struct PackedEmbeddings {
  EmbeddingTable tokens;  // [vocab, input_width]
  TensorView<const float, 2>
      positions;  // [max_positions, input_width]; a row of zeros if not learned
  bool learned;
  TensorView<const float, 2> segments;  // [segment_types, input_width]
  PackedNorm norm;

  const float* position(int64_t index) const { return positions.row(learned ? index : 0); }
};

// A model prepared for the CPU. Immutable, thread-safe.
class CpuEncoder final : public PreparedEncoder {
 public:
  // Copies what it needs of `weights` and lets go of them. UNIMPLEMENTED for an encoder of states.
  static absl::StatusOr<std::unique_ptr<CpuEncoder>> Create(const EncoderConfig& config,
                                                            EncoderWeights weights,
                                                            const PackOptions& options);

  const EncoderConfig& config() const override { return layers_.config; }
  const PreparedInfo& info() const override { return info_; }
  const IsaLevel* cpu_level() const override { return &layers_.level; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                      const ThreadTeam& team) const override;

  const PackedLayers& layers() const { return layers_; }
  const PackedEmbeddings& embeddings() const { return embeddings_; }
  const RelativeScores& relative_scores() const { return relative_scores_; }
  const DisentangledScores& disentangled_scores() const { return disentangled_scores_; }

 private:
  CpuEncoder(PackedLayers layers, DisentangledScores disentangled_scores,
             const EncoderWeights& weights, int load_threads);

  PreparedInfo info_;
  PackedLayers layers_;
  Arena memory_;  // of the embedding tables
  PackedEmbeddings embeddings_;
  RelativeScores relative_scores_;
  DisentangledScores disentangled_scores_;
};

}  // namespace attendant::cpu
