// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/scored/scored_kernels.h"

#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/cpu_isa.h"

namespace attendant::attention {

// Settled once: it asks the processor, which takes a virtual machine microseconds, and calls are
// many. What kAuto stands for does not change either.
absl::StatusOr<const ScoredKernels*> FindScoredKernels() {
  static const absl::StatusOr<CpuIsa> isa = AutoCpuIsa();
  ATTENDANT_RETURN_IF_ERROR(isa);
  return *isa == CpuIsa::kAvx2 ? &kAvx2ScoredKernels : &kAvx512ScoredKernels;
}

}  // namespace attendant::attention
