// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/scored/scored_kernels.h"

#include "kernels/attention/attention.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {

const ScoredKernels& ScoredKernelsOf(const Call& call) {
  return call.isa->isa < cpu::CpuIsa::kAvx512 ? kAvx2ScoredKernels : kAvx512ScoredKernels;
}

}  // namespace attendant::attention
