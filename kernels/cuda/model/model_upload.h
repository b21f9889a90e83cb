// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/model/model.h"

namespace attendant::cuda {

// Sends weights to where `model` has placed them, in the formats that it computes in. Returns when
// they are there.
Status UploadWeights(const Model& model, const AttendantCudaWeights& weights);

}  // namespace attendant::cuda
