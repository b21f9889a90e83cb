// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul.h"

#include "kernels/cpu/onednn_matmul.h"
#include "kernels/cpu/tile_matmul.h"

namespace attendant::cpu {

absl::StatusOr<std::unique_ptr<Matmul>> CreateMatmul(const VectorKernels& kernels,
                                                     const Matmul::Options& options) {
  if (TileMatmul::Covers(kernels, options)) return std::make_unique<TileMatmul>(kernels, options);
  return OneDnnMatmul::Create(options);
}

}  // namespace attendant::cpu
