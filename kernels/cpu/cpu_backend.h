// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"

namespace attendant {

enum class CpuIsa { kAuto, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16 };

struct CpuBackendOptions {
  CpuIsa isa = CpuIsa::kAuto;  // kAuto: the best of this machine
};

// The CPU back end: packed tokens end to end, weights prepacked for oneDNN's matmul, everything
// between the products in our own vector kernels. UNAVAILABLE when the processor lacks the
// instructions (AVX2 and FMA at the least).
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options = {});

}  // namespace attendant
