// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// What our kernels are compiled for, and the formats whose matmuls are faster there than f32's.
struct IsaLevel {
  CpuIsa isa;
  const VectorKernels& kernels;
  bool bf16;
  bool int8;
};

// The level asked for, or for kAuto that of AutoCpuIsa; UNAVAILABLE, saying what is missing, when
// the machine lacks it.
absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa);

}  // namespace attendant::cpu
