// SPDX-License-Identifier: Apache-2.0
#include "server/requests/number_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace attendant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// From the definition: sign, 5 bits of exponent, 10 of fraction.
float FromF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0x1f) return fraction != 0 ? NAN : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// Every value converts to itself; halfway to the next goes to the even one, a hair beyond to the
// next.
void CheckEveryPositive(uint16_t infinity, uint16_t (*to)(float), float (*from)(uint16_t)) {
  for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const uint16_t next = static_cast<uint16_t>(bits + 1);
    const float value = from(bits);
    const float middle = static_cast<float>((static_cast<double>(value) + from(next)) / 2);
    ASSERT_EQ(to(value), bits);
    ASSERT_EQ(to(-value), bits | 0x8000);
    if (!std::isnormal(middle)) continue;
    ASSERT_EQ(to(middle), bits % 2 == 0 ? bits : next) << value;
    ASSERT_EQ(to(std::nextafter(middle, kInfinity)), next) << value;
    ASSERT_EQ(to(std::nextafter(middle, 0.0f)), bits) << value;
  }
}

TEST(NumberFormat, Bf16RoundsToNearestEven) { CheckEveryPositive(0x7f80, ToBf16, FromBf16); }

TEST(NumberFormat, F16RoundsToNearestEven) { CheckEveryPositive(0x7c00, ToF16, FromF16); }

TEST(NumberFormat, TooLargeIsInfinite) {
  EXPECT_EQ(ToF16(65519.0f), 0x7bff);
  EXPECT_EQ(ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(ToF16(-1e30f), 0xfc00);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(ToBf16(kInfinity), 0x7f80);
  EXPECT_EQ(ToF16(kInfinity), 0x7c00);
}

TEST(NumberFormat, NanStaysNan) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(FromBf16(ToBf16(std::bit_cast<float>(bits))))) << bits;
    EXPECT_TRUE(std::isnan(FromF16(ToF16(std::bit_cast<float>(bits))))) << bits;
  }
}

TEST(NumberFormat, AppendsLittleEndian) {
  const float values[] = {1.0f, -2.0f};
  std::string bytes = "x";
  AppendValues(values, NumberFormat::kF16, bytes);
  EXPECT_EQ(bytes, std::string("x\x00\x3c\x00\xc0", 5));
  AppendValues(values, NumberFormat::kBf16, bytes);
  EXPECT_EQ(bytes.substr(5), std::string("\x80\x3f\x00\xc0", 4));
  AppendValues(values, NumberFormat::kF32, bytes);
  EXPECT_EQ(bytes.substr(9), std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8));
}

}  // namespace
}  // namespace attendant
