// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/arena.h"
#include "kernels/core/dtype.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::cpu {

// Rows that a head computes at once.
inline constexpr int64_t kHeadRows = 128;

// The compute settings of a head: matmuls in f32 or bf16, all else in f32.
struct HeadCompute {
  const IsaLevel& level;
  DType dtype = DType::kF32;

  int64_t operand_bytes() const { return dtype == DType::kBf16 ? 2 : 4; }
  // operand [count] = x, in the format of matmuls.
  void Convert(const float* x, int64_t count, void* operand) const;
};

// y = x weight^T + bias for rows, in slices of equally many outputs, of which the last is filled up
// with zeros. A row of y has the same bits whatever rows are beside it. Immutable, thread-safe.
class RowLinear {
 public:
  // Copies the weights. `columns`: outputs of a slice, or 0: all. Errors are CreateMatmul's. Throws
  // std::exception.
  static absl::StatusOr<RowLinear> Create(const HeadCompute& compute, const LinearWeights& weights,
                                          int64_t columns = 0);

  int64_t inputs() const { return matmul_->options().k; }
  int64_t outputs() const { return outputs_; }
  int64_t columns() const { return matmul_->options().n; }  // of a slice
  int64_t slices() const { return slices_; }
  int64_t bytes() const;

  // The state of one thread that runs a RowLinear. The RowLinear must outlive it, and must not be
  // moved.
  class Executor {
   public:
    // Throws std::exception.
    explicit Executor(const RowLinear& linear);

    // y [rows, columns] = slice `slice` for x [rows, inputs], operands; both have room for
    // RoundUpRows(rows) rows. False when the matmul failed. REQUIRES: rows <= kHeadRows.
    [[nodiscard]] bool Run(int64_t slice, int64_t rows, const void* x, float* y);

   private:
    const RowLinear* linear_;
    std::unique_ptr<Arena> scratchpad_;
    std::unique_ptr<MatmulExecutor> matmul_;
  };

 private:
  RowLinear() = default;
  void Pack(const LinearWeights& weights);

  std::unique_ptr<Matmul> matmul_;
  int64_t outputs_ = 0, slices_ = 0, slice_bytes_ = 0;
  Arena memory_;
  std::byte* packed_ = nullptr;  // [slices], slice_bytes_ each, in memory_
  std::vector<float> bias_;      // [slices, columns]
};

}  // namespace attendant::cpu
