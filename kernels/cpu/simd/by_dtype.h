// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/backend.h"
#include "kernels/core/check.h"

namespace attendant::cpu {

// The one of three that belongs to `dtype`. REQUIRES: f32, bf16 or int8, as CpuBackend::Supports.
template <typename T>
const T& ByDType(DType dtype, const T& f32, const T& bf16, const T& int8) {
  switch (dtype) {
    case DType::kF32:
      return f32;
    case DType::kBf16:
      return bf16;
    case DType::kInt8:
      return int8;
    case DType::kF16:
    case DType::kFp8:
      break;
  }
  ATTENDANT_CHECK(false);
}

}  // namespace attendant::cpu
