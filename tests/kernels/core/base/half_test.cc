// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attendant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A format of 16 bits by its definition: sign, exponent, fraction.
struct Format {
  const char* name;
  int fraction_bits;
  int bias;
  uint16_t (*to)(float);
  float (*from)(uint16_t);

  uint16_t infinity() const {
    return static_cast<uint16_t>(0x7fff >> fraction_bits << fraction_bits);
  }
  double Value(uint16_t bits) const {
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    if ((bits & 0x7fff) == infinity()) return sign * static_cast<double>(kInfinity);
    if ((bits & 0x7fff) > infinity()) return std::nan("");
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
};

class HalfTest : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(Formats, HalfTest,
                         testing::Values(Format{"Bf16", 7, 127, ToBf16, FromBf16},
                                         Format{"F16", 10, 15, ToF16, FromF16}),
                         [](const auto& test) { return test.param.name; });

TEST_P(HalfTest, EveryValueBecomesF32AndComesBack) {
  const Format& format = GetParam();
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = format.from(bits);
    const double expected = format.Value(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(format.from(format.to(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
      ASSERT_EQ(format.to(value), bits);
    }
  }
}

// Halfway to the next value goes to the even one, a hair beyond to the nearer one. Halfway between
// the largest value and the power of two after it is infinite.
TEST_P(HalfTest, RoundsToNearestTiesToEven) {
  const Format& format = GetParam();
  for (uint16_t bits = 0; bits < format.infinity(); ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    const double step = format.Value(bits) - format.Value(static_cast<uint16_t>(bits - 1));
    const double above = next < format.infinity() ? format.Value(next) : format.Value(bits) + step;
    const auto middle = static_cast<float>((format.Value(bits) + above) / 2);
    const uint16_t even = bits % 2 == 0 ? bits : next;
    for (const int sign : {0, 0x8000}) {
      const float signed_middle = sign == 0 ? middle : -middle;
      ASSERT_EQ(format.to(signed_middle), even | sign) << bits;
      ASSERT_EQ(format.to(std::nextafter(signed_middle, signed_middle * 2)), next | sign) << bits;
      ASSERT_EQ(format.to(std::nextafter(signed_middle, 0.0f)), bits | sign) << bits;
    }
  }
}

TEST_P(HalfTest, TooLargeIsInfiniteAndNanStaysNan) {
  const Format& format = GetParam();
  for (const float value : {std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(format.to(value), format.infinity());
    EXPECT_EQ(format.to(-value), format.infinity() | 0x8000);
  }
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(format.from(format.to(std::bit_cast<float>(bits))))) << bits;
  }
}

}  // namespace
}  // namespace attendant
