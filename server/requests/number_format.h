// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// How values are written on the wire, little-endian.
enum class NumberFormat { kF32, kBf16, kF16 };

int64_t BytesPerValue(NumberFormat format);

// Round to nearest, ties to even. NaN stays NaN; what is too large becomes infinite.
uint16_t ToBf16(float value);
uint16_t ToF16(float value);
float FromBf16(uint16_t bits);
float FromF16(uint16_t bits);

void AppendValues(std::span<const float> values, NumberFormat format, std::string& bytes);

// REQUIRES: bytes.size() == values.size() * BytesPerValue(format).
void ReadValues(absl::string_view bytes, NumberFormat format, std::span<float> values);

}  // namespace attendant
