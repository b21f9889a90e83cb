// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace attendant::client {

// Random numbers, the same for a seed on every machine. The distributions of the standard library
// do not promise that.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // A uniform random number in [0, 1).
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  // A uniform random integer in [low, high]. REQUIRES: low <= high.
  int64_t Integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Uniform() * static_cast<double>(high - low + 1));
  }

  // The time to the next of `rate` events per second, in seconds.
  double Exponential(double rate) { return -std::log1p(-Uniform()) / rate; }

  // Mean 0, deviation 1.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log1p(-Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace attendant::client
