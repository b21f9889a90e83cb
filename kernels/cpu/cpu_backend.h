// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/cpu/simd/cpu_isa.h"

namespace attendant {

struct CpuBackendOptions {
  // The formats that are offered and our own kernels. oneDNN's matmuls, where they are used, go by
  // the machine all the same: it is held down for a whole process only, by LimitCpuIsa, and two
  // back ends of one process may differ in this.
  CpuIsa isa = CpuIsa::kAuto;
  int load_threads = 1;  // that Prepare may use
};

// The CPU back end: packed tokens end to end, weights packed once, everything in our own
// vector kernels but for what AMX multiplies, which oneDNN does. UNAVAILABLE when the processor
// lacks the instructions (AVX2 and FMA at the least).
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options = {});

}  // namespace attendant
