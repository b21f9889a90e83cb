// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/core/shape.h"

namespace attendant {

// One block of memory, handed out from its start in 64-byte aligned pieces and given back all at
// once. An arena without memory measures: it counts the bytes that the same requests would take, so
// that one piece of code measures a layout and makes it. Thread-compatible.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  // Measures.
  Arena() = default;
  // Owns zeroed memory, rounded up to kAlignment; measures with 0. Much memory asks the kernel for
  // huge pages: matmuls and attention walk through many small pages at once.
  explicit Arena(int64_t capacity_bytes);
  // Hands out the caller's memory, as it is. REQUIRES: aligned to kAlignment.
  explicit Arena(std::span<std::byte> memory)
      : capacity_bytes_(static_cast<int64_t>(memory.size())), memory_(memory.data()) {}

  // [elements], or nullptr when measuring. REQUIRES elsewhere: it fits.
  template <typename T>
  T* Allocate(int64_t elements) {
    return reinterpret_cast<T*>(AllocateBytes(elements * static_cast<int64_t>(sizeof(T))));
  }
  template <typename T>
  TensorView<T, 2> Allocate2(int64_t rows, int64_t columns) {
    return TensorView<T, 2>(Allocate<T>(rows * columns), {rows, columns});
  }

  int64_t used_bytes() const { return used_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
    size_t alignment;
  };

  std::byte* AllocateBytes(int64_t bytes);

  int64_t capacity_bytes_ = 0;
  int64_t used_bytes_ = 0;
  std::unique_ptr<std::byte, Free> owned_{nullptr, Free{kAlignment}};
  std::byte* memory_ = nullptr;
};

}  // namespace attendant
