// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// The parts of attention that depend on distances between positions alone: the score bias, the
// window of local layers, and the causal mask. Thread-safe.
class RelativeScores {
 public:
  RelativeScores(const EncoderConfig& config, const EncoderWeights& weights);

  // True if the scores of layer `layer` depend on distances between positions: it has a bias or a
  // window.
  bool in(int64_t layer) const { return !by_distance_.empty() || Window(layer) != kAllKeys; }

  // Bias and window of a head, for a sequence whose positions follow one another.
  void Apply(int64_t layer, int64_t head, AttentionArgs& args) const;

  // The same for any positions [len], of which the first `keys` are those of keys, as a bias
  // [query_end - query_begin, keys].
  void Write(int64_t layer, int64_t head, std::span<const int32_t> positions, int64_t keys,
             int64_t query_begin, int64_t query_end, float* bias) const;

  int64_t bytes() const { return static_cast<int64_t>(by_distance_.size() * sizeof(float)); }

 private:
  int64_t Window(int64_t layer) const { return windows_[static_cast<size_t>(layer)]; }
  // The biases of a head, indexed by distance, from 1 - max_positions to max_positions - 1.
  const float* AtDistance(int64_t head) const;

  int64_t max_positions_;
  bool causal_;
  std::vector<int64_t> windows_;    // [layers], kAllKeys for a layer that is not local
  std::vector<float> by_distance_;  // [heads, 2 * max_positions - 1], or empty
};

}  // namespace attendant::cpu
