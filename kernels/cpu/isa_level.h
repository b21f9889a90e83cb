// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant::cpu {

// What our kernels are compiled for, and the formats whose products are faster there than f32's.
// (oneDNN dispatches on the real machine: a lower level holds only our own kernels down.)
struct IsaLevel {
  CpuIsa isa;
  bool (*available)();
  const VectorKernels& kernels;
  bool bf16;
  bool int8;
};

// The best level of this machine, or the one asked for; UNAVAILABLE when the processor lacks it.
absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa);

}  // namespace attendant::cpu
