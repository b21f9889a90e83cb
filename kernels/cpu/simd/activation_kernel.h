// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/encoder_config.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

template <typename Kernel>
Kernel ActivationKernel(const ActivationKernels<Kernel>& kernels, Activation activation) {
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
