// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/dtype.h"

namespace attendant {

absl::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kInt8:
      return "int8";
    case DType::kFp8:
      return "fp8";
  }
  return "unknown";
}

}  // namespace attendant
