// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace attendant {

// Ids that differ from each other, and by chance (64 random bits) from those of other processes.
// They are no secrets: the next one can be computed from two. Thread-safe.
class IdSource {
 public:
  explicit IdSource(uint64_t seed) : state_(seed) {}

  // Not 0. The generator is splitmix64, whose values repeat after 2^64.
  uint64_t Next() {
    uint64_t value = 0;
    while (value == 0) value = Mix(state_.fetch_add(kStep, std::memory_order_relaxed));
    return value;
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::atomic<uint64_t> state_;
};

}  // namespace attendant
