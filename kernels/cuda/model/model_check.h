// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/cuda_interface.h"
#include "kernels/cuda/runtime/number_types.h"
#include "kernels/cuda/runtime/status.h"

namespace attendant::cuda {

// OK, or what of the dimensions or the format this library cannot compute: INVALID_ARGUMENT for
// what makes no sense, UNIMPLEMENTED for what there are no kernels for.
Status CheckConfig(const AttendantCudaConfig& config, DType dtype);

// OK, INVALID_ARGUMENT when a tensor that `config` asks for is null, or UNIMPLEMENTED when one is
// there for whose size there is no kernel.
Status CheckTensors(const AttendantCudaConfig& config, const AttendantCudaWeights& weights);

}  // namespace attendant::cuda
