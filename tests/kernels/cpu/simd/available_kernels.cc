// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cpu/simd/available_kernels.h"

#include "absl/status/statusor.h"

namespace attendant::cpu {

std::vector<const IsaLevel*> AvailableLevels(MatmulChoice matmul) {
  std::vector<const IsaLevel*> levels;
  for (const CpuIsa isa : kCpuIsaLevels) {
    if (const auto level = FindIsaLevel(isa, matmul); level.ok()) levels.push_back(*level);
  }
  return levels;
}

std::vector<const VectorKernels*> AvailableKernels() {
  std::vector<const VectorKernels*> kernels;
  for (const IsaLevel* level : AvailableLevels()) kernels.push_back(&level->kernels);
  return kernels;
}

}  // namespace attendant::cpu
