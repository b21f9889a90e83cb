// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace attendant {

// Uniform in [-amplitude, amplitude), exact in f32: value i is 24 bits of splitmix64's mix of
// (seed, i). The twin of `values` in tests/golden/attention/make_golden.py, so that large inputs
// need not be stored.
inline std::vector<float> CounterValues(uint64_t seed, int64_t count, float amplitude = 1) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t z = (seed * kGolden + i) * kGolden + 0x632BE59BD9B4E019;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    values[i] = (static_cast<float>(z >> 40) * 0x1p-23f - 1.0f) * amplitude;
  }
  return values;
}

}  // namespace attendant
