// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/arena.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/encoder/packed_layers.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// The terms that ScoreBias::kDisentangled adds to scores. The embeddings of distances are projected
// as queries and as keys, scaled, and packed at load. A head multiplies its queries and its keys
// with those in reach, and each score picks one product of either. Thread-safe.
class DisentangledScores {
 public:
  // Of one thread.
  struct Scratch {
    float* query_products = nullptr;  // [max queries, row_stride()], rows rounded up
    float* key_products = nullptr;    // [max keys, row_stride()], likewise
    std::byte* rows = nullptr;        // of the kernel
  };

  // Nothing, for encoders with other biases.
  DisentangledScores() = default;

  // Copies what it needs of `weights`. INTERNAL when a matmul fails. Throws std::exception.
  // REQUIRES: ValidateWeights(config, weights) is OK; `layers` are made from them.
  static absl::StatusOr<DisentangledScores> Create(const PackedLayers& layers,
                                                   const EncoderWeights& weights, int load_threads);

  bool empty() const { return buckets_ == 0; }
  int64_t bytes() const { return memory_.used_bytes(); }

  // REQUIRES: not empty.
  Scratch Allocate(Arena& arena, int64_t max_queries, int64_t max_keys) const;

  // bias [query_end - query_begin, keys] of a head, for the queries and keys of `args`, whose
  // tokens stand at `positions` [len], keys first. REQUIRES: as many queries and keys as the
  // scratch is for.
  void Write(int64_t layer, int64_t head, const AttentionArgs& args,
             std::span<const int32_t> positions, int64_t query_begin, int64_t query_end,
             const Scratch& scratch, float* bias) const;

 private:
  int64_t row_stride() const;
  // A head's packed queries, and keys behind them.
  std::byte* PackedHead(int64_t layer, int64_t head) const;
  absl::Status PackLayer(const PackedLayers& layers, const EncoderWeights& weights,
                         const Matmul& matmul, int64_t layer) const;
  int32_t BucketAt(int64_t distance) const { return bucket_at_distance_[Place(distance)]; }
  size_t Place(int64_t distance) const {
    return static_cast<size_t>(distance + max_positions_ - 1);
  }

  const DotKernels* kernels_ = nullptr;
  int64_t heads_ = 0, head_dim_ = 0, max_positions_ = 0;
  int64_t qkv_value_bytes_ = 0;
  int64_t buckets_ = 0;
  int64_t packed_bytes_ = 0;                 // of one head's queries or keys
  std::vector<int32_t> bucket_at_distance_;  // [2 * max_positions - 1]
  Arena memory_;
  std::byte* packed_ = nullptr;  // [layers, heads, 2]
};

}  // namespace attendant::cpu
