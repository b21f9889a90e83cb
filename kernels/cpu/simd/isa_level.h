// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// The kernels of one instruction set, and the number formats whose matmuls are faster there than
// those of f32. Nothing remembers a level for the process: whoever computes gets it as an argument.
struct IsaLevel {
  CpuIsa isa;
  const VectorKernels& kernels;
  bool bf16;
  bool int8;
};

// The level asked for, for kAuto the best of this machine. It lives as long as the process.
// UNAVAILABLE, saying what is missing, when the machine lacks it. Asks the processor, which takes a
// virtual machine microseconds: callers find a level once and pass it on.
absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa);

}  // namespace attendant::cpu
