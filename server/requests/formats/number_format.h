// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// The number format of values on the wire, little-endian.
enum class NumberFormat { kF32, kBf16, kF16 };

int64_t BytesPerValue(NumberFormat format);

// Rounds as kernels/core/base/half.h does.
void AppendValues(std::span<const float> values, NumberFormat format, std::string& bytes);

// REQUIRES: bytes.size() == values.size() * BytesPerValue(format).
void ReadValues(absl::string_view bytes, NumberFormat format, std::span<float> values);

}  // namespace attendant
