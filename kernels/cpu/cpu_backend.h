// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant {

struct CpuBackendOptions {
  // Decides the number formats that the back end offers, and the kernels. Two back ends of one
  // process may differ in it. oneDNN's limit is one for the process (LimitOneDnn).
  cpu::CpuIsa isa = cpu::CpuIsa::kAuto;
  cpu::MatmulChoice matmul = cpu::MatmulChoice::kAuto;
  int load_threads = 1;  // that Prepare may use
};

// The CPU back end: packed tokens end to end, weights packed once. The kernels of cpu/simd compute
// everything but the matmuls that the tiles lack, or that `matmul` gives to oneDNN. UNAVAILABLE
// when the processor lacks the instructions (AVX2 and FMA at the least).
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options = {});

}  // namespace attendant
