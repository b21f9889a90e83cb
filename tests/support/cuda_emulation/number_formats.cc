// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_emulation/number_formats.h"

#include "kernels/cuda/runtime/number_types.h"

namespace attendant::cuda_emulation {

int64_t BytesOf(cudaDataType type) {
  if (type == CUDA_R_32F) return 4;
  return type == CUDA_R_8F_E4M3 ? 1 : 2;
}

float LoadFloat(cudaDataType type, const void* values, int64_t index) {
  switch (type) {
    case CUDA_R_16F:
      return cuda::ToFloat(static_cast<const cuda::F16*>(values)[index]);
    case CUDA_R_16BF:
      return cuda::ToFloat(static_cast<const cuda::Bf16*>(values)[index]);
    case CUDA_R_8F_E4M3:
      return cuda::ToFloat(static_cast<const cuda::E4m3*>(values)[index]);
    default:
      return static_cast<const float*>(values)[index];
  }
}

void StoreFloat(cudaDataType type, float value, void* values, int64_t index) {
  if (type == CUDA_R_16F) {
    static_cast<cuda::F16*>(values)[index] = cuda::ToF16(value);
  } else if (type == CUDA_R_16BF) {
    static_cast<cuda::Bf16*>(values)[index] = cuda::ToBf16(value);
  } else {
    static_cast<float*>(values)[index] = value;
  }
}

}  // namespace attendant::cuda_emulation
