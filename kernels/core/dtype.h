// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace attendant {

// The number format of weights and activations. Accumulation and statistics are f32 in all of them.
// kFp8 is e4m3 in matmuls and bf16 elsewhere.
enum class DType : uint8_t { kF32, kBf16, kF16, kInt8, kFp8 };
inline constexpr std::array kDTypes = {DType::kF32, DType::kBf16, DType::kF16, DType::kInt8,
                                       DType::kFp8};
absl::string_view DTypeName(DType dtype);  // "f32", "bf16", "f16", "int8", "fp8"

}  // namespace attendant
