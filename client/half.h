// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::client {

// The two formats of half the size. Rounding is to nearest, ties to even; NaN stays NaN; what is
// too large becomes infinite.
float FromBf16(uint16_t bits);
float FromF16(uint16_t bits);
uint16_t ToBf16(float value);
uint16_t ToF16(float value);

}  // namespace attendant::client
