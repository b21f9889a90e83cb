// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/encoder_config.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// The kernel of an activation; `gated`: of an ffn's two halves.
inline RowKernels::Activate ActivationKernel(const RowKernels& kernels, Activation activation,
                                             bool gated) {
  switch (activation) {
    case Activation::kGeluTanh:
      return gated ? kernels.gated_gelu_tanh : kernels.gelu_tanh;
    case Activation::kRelu:
      return gated ? kernels.gated_relu : kernels.relu;
    case Activation::kSilu:
      return gated ? kernels.gated_silu : kernels.silu;
    case Activation::kGeluErf:
      break;
  }
  return gated ? kernels.gated_gelu_erf : kernels.gelu_erf;
}

// The matmul that ends in an activation, or null.
inline MatmulKernels::Activate ActivationMatmul(const MatmulKernels& kernels,
                                                Activation activation) {
  switch (activation) {
    case Activation::kGeluTanh:
      return kernels.gelu_tanh;
    case Activation::kRelu:
      return kernels.relu;
    case Activation::kSilu:
      return kernels.silu;
    case Activation::kGeluErf:
      break;
  }
  return kernels.gelu_erf;
}

}  // namespace attendant::cpu
