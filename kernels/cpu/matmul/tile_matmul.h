// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// Matmuls by register tiles (matmul_tiles.inc): nothing is compiled or allocated to run
// them, and a row costs the same in every number of rows.
class TileMatmul final : public Matmul {
 public:
  // True if `kernels` have a matmul for the format, k, n and output of `options`. REQUIRES: a bias,
  // unless the output is kSums.
  static bool Covers(const VectorKernels& kernels, const Options& options);

  // REQUIRES: Covers(kernels, options). `kernels` must outlive it.
  TileMatmul(const VectorKernels& kernels, const Options& options);

  std::string implementation() const override;
  void Pack(TensorView<const float, 2> weight, void* storage) const override;
  void Pack(TensorView<const int8_t, 2> weight, void* storage) const override;
  int64_t packed_bytes() const override;
  int64_t gate_columns() const override { return kernels_.panel_columns / 2; }
  int64_t CountSlices(int64_t limit) const override;
  absl::StatusOr<std::unique_ptr<Matmul>> CreateSlice(int64_t slices,
                                                      int64_t max_rows) const override;
  std::unique_ptr<MatmulExecutor> NewExecutor(void* scratchpad) const override;
  size_t scratchpad_bytes() const override { return 0; }

 private:
  const VectorKernels& all_kernels_;
  const MatmulKernels& kernels_;  // of the format
};

}  // namespace attendant::cpu
