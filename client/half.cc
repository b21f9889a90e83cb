// SPDX-License-Identifier: Apache-2.0
#include "client/half.h"

#include <bit>
#include <cmath>
#include <limits>

namespace attendant::client {

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float FromF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent < 31) return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  if (mantissa != 0) return std::numeric_limits<float>::quiet_NaN();
  return sign * std::numeric_limits<float>::infinity();
}

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t ToF16(float value) {
  const uint32_t sign = std::bit_cast<uint32_t>(value) >> 16 & 0x8000;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);  // halfway past the largest
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // The distance between neighbours: 2^-24 for the smallest, else 2^-11 of the next power of two.
  const int step = exponent - 11 < -24 ? -24 : exponent - 11;
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -step)));
  // Units that reach the next power of two carry into the exponent, as they must.
  const uint32_t biased = step == -24 ? 0u : static_cast<uint32_t>(step + 24);
  return static_cast<uint16_t>(sign | (units + (biased << 10)));
}

}  // namespace attendant::client
