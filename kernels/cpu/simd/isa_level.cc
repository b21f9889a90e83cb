// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/isa_level.h"

#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"

namespace attendant::cpu {
namespace {

const IsaLevel kLevels[] = {
    {CpuIsa::kAvx2, kAvx2Kernels, false, false},
    {CpuIsa::kAvx512, kAvx512Kernels, false, false},
    {CpuIsa::kAvx512Vnni, kAvx512VnniKernels, false, true},
    {CpuIsa::kAvx512Bf16, kAvx512Bf16Kernels, true, true},
    {CpuIsa::kAmx, kAmxKernels, true, true},
};

}  // namespace

absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa) {
  ATTENDANT_ASSIGN_OR_RETURN(const CpuIsa chosen, ChooseCpuIsa(isa, ReadCpuIdWords()));
  for (const IsaLevel& level : kLevels) {
    if (level.isa == chosen) return &level;
  }
  ATTENDANT_CHECK(false);
}

}  // namespace attendant::cpu
