// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/encoder_config.h"
#include "kernels/core/shape.h"

// Tables by position, or by the distance between two positions, for all back ends.
namespace attendant {

// The cosines and sines of rotary positions 0 .. positions - 1. Thread-safe.
class RotaryTable {
 public:
  RotaryTable() = default;
  RotaryTable(const Rotary& rotary, int64_t positions, int64_t head_dim);

  // Of all pairs of a head, [head_dim / 2].
  const float* cosines(int64_t position) const { return values_.data() + position * 2 * pairs_; }
  const float* sines(int64_t position) const { return cosines(position) + pairs_; }
  // The cosines, then the sines, of each position in turn: [positions, 2, head_dim / 2]; null for
  // an empty table.
  const float* data() const { return values_.empty() ? nullptr : values_.data(); }

  int64_t bytes() const { return static_cast<int64_t>(values_.size() * sizeof(float)); }

 private:
  int64_t pairs_ = 0;
  std::vector<float> values_;  // [positions, 2, pairs]
};

// The score bias for each distance from a query's position to a key's, from
// 1 - max_positions on: [heads, 2 * max_positions - 1]; empty for kinds that do not go by the
// distance alone. `weights` [bias_buckets, heads] are those of kBuckets.
std::vector<float> ScoresByDistance(const EncoderConfig& config,
                                    TensorView<const float, 2> weights);

}  // namespace attendant
