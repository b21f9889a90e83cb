// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Converts stored values to f32. `dtype` is the safetensors word for their format: F32, F16, BF16
// or F64; values of F64 beyond f32's range become infinite. `data` may have any alignment.
// INVALID_ARGUMENT for another dtype. REQUIRES: `values` has as many elements as `data`.
absl::Status ConvertToFloat(absl::string_view dtype, std::span<const std::byte> data,
                            std::span<float> values);

// Index of the first value that is infinite or not a number; -1 when all are finite.
int64_t FirstNonFinite(std::span<const float> values);

}  // namespace attendant
