// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/encoder_config.h"

namespace attendant::cpu {

// The cosines and sines of rotary positions 0 .. positions - 1. Thread-safe.
class RotaryTable {
 public:
  RotaryTable() = default;
  RotaryTable(const Rotary& rotary, int64_t positions, int64_t head_dim);

  // Of all pairs of a head, [head_dim / 2].
  const float* cosines(int64_t position) const { return values_.data() + position * 2 * pairs_; }
  const float* sines(int64_t position) const { return cosines(position) + pairs_; }

  int64_t bytes() const { return static_cast<int64_t>(values_.size() * sizeof(float)); }

 private:
  int64_t pairs_ = 0;
  std::vector<float> values_;  // [positions, 2, pairs]
};

}  // namespace attendant::cpu
