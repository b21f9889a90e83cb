// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <cstdint>

// The device's number formats as floats, for emulated matmuls and plain kernels.
namespace attendant::cuda_emulation {

int64_t BytesOf(cudaDataType type);
float LoadFloat(cudaDataType type, const void* values, int64_t index);
// Rounds to nearest, ties to even.
void StoreFloat(cudaDataType type, float value, void* values, int64_t index);

}  // namespace attendant::cuda_emulation
