// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cpu/simd/available_kernels.h"

#include "kernels/cpu/cpu_backend.h"

namespace attendant::cpu {

std::vector<const VectorKernels*> AvailableKernels() {
  std::vector<const VectorKernels*> kernels;
  if (MakeCpuBackend({.isa = CpuIsa::kAvx2}).ok()) kernels.push_back(&kAvx2Kernels);
  if (MakeCpuBackend({.isa = CpuIsa::kAvx512}).ok()) kernels.push_back(&kAvx512Kernels);
  if (MakeCpuBackend({.isa = CpuIsa::kAvx512Vnni}).ok()) kernels.push_back(&kAvx512VnniKernels);
  if (MakeCpuBackend({.isa = CpuIsa::kAvx512Bf16}).ok()) kernels.push_back(&kAvx512Bf16Kernels);
  if (MakeCpuBackend({.isa = CpuIsa::kAmx}).ok()) kernels.push_back(&kAmxKernels);
  return kernels;
}

}  // namespace attendant::cpu
