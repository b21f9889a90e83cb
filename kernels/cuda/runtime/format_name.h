// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernels/number_types.h"

namespace attendant::cuda {

// As users write it: "bf16".
inline const char* FormatName(Format format) {
  switch (format) {
    case Format::kF32:
      return "f32";
    case Format::kBf16:
      return "bf16";
    case Format::kF16:
      return "f16";
    case Format::kFp8:
      return "fp8";
  }
  return "?";
}

}  // namespace attendant::cuda
