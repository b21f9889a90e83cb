// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/family_kernels.h"

namespace attendant::attention {

absl::StatusOr<const FamilyKernels*> FindFamilyKernels() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return absl::UnavailableError("attention needs a processor with AVX2 and FMA");
  }
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? &kAvx512FamilyKernels : &kAvx2FamilyKernels;
}

}  // namespace attendant::attention
