// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace attendant {

// How an answer's values are written, little-endian.
enum class NumberFormat { kF32, kBf16, kF16 };

int64_t BytesPerValue(NumberFormat format);

// Round to nearest, ties to even. NaN stays NaN; what is too large becomes infinite.
uint16_t ToBf16(float value);
uint16_t ToF16(float value);

void AppendValues(std::span<const float> values, NumberFormat format, std::string& bytes);

}  // namespace attendant
