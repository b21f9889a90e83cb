// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/matmul.h"

#include <algorithm>

#include "kernels/cpu/matmul/onednn_matmul.h"
#include "kernels/cpu/matmul/tile_matmul.h"

namespace attendant::cpu {

int64_t Matmul::LargestDivisor(int64_t pieces, int64_t limit) {
  int64_t slices = std::min(limit, pieces);
  while (pieces % slices != 0) --slices;
  return slices;
}

Matmul::Options Matmul::SliceOptions(int64_t slices, int64_t max_rows) const {
  Options slice = options_;
  slice.n = options_.n / slices;
  slice.y_columns = options_.n;
  slice.max_rows = max_rows;
  return slice;
}

absl::StatusOr<std::unique_ptr<Matmul>> CreateMatmul(const VectorKernels& kernels,
                                                     const Matmul::Options& options) {
  if (TileMatmul::Covers(kernels, options)) return std::make_unique<TileMatmul>(kernels, options);
  return OneDnnMatmul::Create(options);
}

}  // namespace attendant::cpu
