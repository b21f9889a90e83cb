// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention/attention.h"

namespace attendant::attention {

// Hands out a call's scratch in aligned pieces, from its start. Without memory it measures what the
// same requests would take: one piece of code lays out and measures. REQUIRES: the sizes are
// checked (CheckedProduct), and the memory is as large as measured.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::span<std::byte> memory) : memory_(memory.data()) {}

  // [count], not zeroed; nullptr when measuring.
  template <typename T>
  T* Take(int64_t count) {
    return reinterpret_cast<T*>(TakeBytes(count * static_cast<int64_t>(sizeof(T))));
  }
  std::byte* TakeBytes(int64_t bytes) {
    std::byte* taken = memory_ == nullptr ? nullptr : memory_ + bytes_;
    constexpr auto kAlignment = static_cast<int64_t>(kScratchAlignment);
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return taken;
  }

  int64_t bytes() const { return bytes_; }  // taken so far

 private:
  std::byte* memory_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace attendant::attention
