// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/core/shape.h"

namespace attendant {

// One block of memory, handed out from its start in 64-byte aligned pieces and given back all at
// once. A dry run over a null arena measures: `Arena(0)` counts what the same requests would need.
// Large ones ask the kernel for huge pages: matmuls and attention walk through many small pages at
// once. Thread-compatible.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  explicit Arena(size_t capacity_bytes);

  // Zeroed memory, or nullptr in a measuring arena. REQUIRES elsewhere: it fits.
  template <typename T>
  T* Allocate(int64_t elements) {
    return reinterpret_cast<T*>(AllocateBytes(static_cast<size_t>(elements) * sizeof(T)));
  }
  template <typename T>
  TensorView<T, 2> Allocate2(int64_t rows, int64_t columns) {
    return TensorView<T, 2>(Allocate<T>(rows * columns), {rows, columns});
  }

  size_t used_bytes() const { return used_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
    size_t alignment;
  };

  std::byte* AllocateBytes(size_t bytes);

  size_t capacity_bytes_;
  size_t used_bytes_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace attendant
