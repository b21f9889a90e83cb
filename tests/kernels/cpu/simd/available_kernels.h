// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/cpu/simd/isa_level.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// Every instruction set that this machine has.
std::vector<const IsaLevel*> AvailableLevels(MatmulChoice matmul = MatmulChoice::kAuto);

// The kernels of every instruction set that this machine has.
std::vector<const VectorKernels*> AvailableKernels();

}  // namespace attendant::cpu
