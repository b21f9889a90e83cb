// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa_level.h"

namespace attendant::cpu {
namespace {

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool HasAvx512Vnni() { return HasAvx512() && __builtin_cpu_supports("avx512vnni"); }
bool HasAvx512Bf16() { return HasAvx512Vnni() && __builtin_cpu_supports("avx512bf16"); }

const IsaLevel kLevels[] = {
    // the best first
    {CpuIsa::kAvx512Bf16, HasAvx512Bf16, kAvx512Bf16Kernels, true, true},
    {CpuIsa::kAvx512Vnni, HasAvx512Vnni, kAvx512Kernels, false, true},
    {CpuIsa::kAvx512, HasAvx512, kAvx512Kernels, false, false},
    {CpuIsa::kAvx2, HasAvx2, kAvx2Kernels, false, false},
};

}  // namespace

absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa) {
  for (const IsaLevel& level : kLevels) {
    if ((isa == CpuIsa::kAuto || isa == level.isa) && level.available()) return &level;
  }
  return absl::UnavailableError(isa == CpuIsa::kAuto
                                    ? "the cpu back end needs a processor with AVX2 and FMA"
                                    : "this processor lacks the instructions asked for");
}

}  // namespace attendant::cpu
