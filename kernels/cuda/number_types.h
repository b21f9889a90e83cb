// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cuda {

// The number format of states and of the products' operands (cuda_interface.h says what each is).
enum class Format : int32_t { kF32 = 0, kBf16 = 1, kF16 = 2, kFp8 = 3 };

// What states are stored in: fp8's are bf16.
constexpr Format StateFormat(Format format) {
  return format == Format::kFp8 ? Format::kBf16 : format;
}
constexpr int64_t StateBytes(Format format) { return format == Format::kF32 ? 4 : 2; }

}  // namespace attendant::cuda
