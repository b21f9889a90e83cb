// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/matmul/packed_linear.h"

namespace attendant::cpu {

// The matmuls of one linear map: all its columns at once, and, where the packed layout allows,
// slices of them, so that several threads share one matmul of few rows. Immutable and thread-safe;
// `whole` must outlive it.
class SlicedMatmul {
 public:
  // `max_rows` and at most `slices` are for the slices alone.
  SlicedMatmul(const Matmul& whole, int64_t slices, int64_t max_rows);

  const Matmul& whole() const { return *whole_; }
  const Matmul& slice() const { return slice_ == nullptr ? *whole_ : *slice_; }
  int64_t slices() const { return slices_; }
  size_t scratchpad_bytes() const;

 private:
  const Matmul* whole_;
  int64_t slices_;
  std::unique_ptr<Matmul> slice_;  // none: the whole is its only slice
};

// The state of one thread that runs a SlicedMatmul, which must outlive it. Thread-confined.
class LinearExecutor {
 public:
  // Throws std::exception.
  LinearExecutor(const SlicedMatmul& matmul, void* scratchpad);

  // y = x w, as MatmulExecutor does it, with what `linear` has of the terms that the matmul takes;
  // `quantization` [rows] is that of x, in int8.
  [[nodiscard]] bool Run(int64_t rows, const void* x, const RowQuantization* quantization,
                         const PackedLinear& linear, void* y);
  // The columns of slice `index` of the same y. REQUIRES: rows at most the slices' max_rows.
  [[nodiscard]] bool RunSlice(int64_t index, int64_t rows, const void* x,
                              const RowQuantization* quantization, const PackedLinear& linear,
                              void* y);
  int64_t slices() const { return matmul_->slices(); }

 private:
  const SlicedMatmul* matmul_;
  std::unique_ptr<MatmulExecutor> whole_;
  std::unique_ptr<MatmulExecutor> slice_;  // none: the whole is its only slice
};

}  // namespace attendant::cpu
