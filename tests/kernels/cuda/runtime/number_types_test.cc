// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/runtime/number_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace attendant::cuda {
namespace {

// The value of a format's bits by its definition: sign, `exponent_bits`, `mantissa_bits`.
double ValueOf(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1u));
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1u));
  const bool negative = (bits >> (exponent_bits + mantissa_bits) & 1u) != 0;
  const double one = std::ldexp(1.0, mantissa_bits);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa / one, 1 - bias)
                                         : std::ldexp(1.0 + mantissa / one, exponent - bias);
  return negative ? -magnitude : magnitude;
}

// A format by its definition: to nearest among all its finite numbers, ties to the even bits.
struct Definition {
  int exponent_bits;
  int mantissa_bits;
  uint32_t largest;  // bits of the largest finite number
};

uint32_t Nearest(const Definition& format, double magnitude) {
  uint32_t low = 0;
  uint32_t high = format.largest;
  while (high - low > 1) {  // bits grow with the number
    const uint32_t middle = (low + high) / 2;
    (ValueOf(middle, format.exponent_bits, format.mantissa_bits) <= magnitude ? low : high) =
        middle;
  }
  const double below = magnitude - ValueOf(low, format.exponent_bits, format.mantissa_bits);
  const double above = ValueOf(high, format.exponent_bits, format.mantissa_bits) - magnitude;
  if (below == above) return low % 2 == 0 ? low : high;
  return below < above ? low : high;
}

// Numbers that matter to a format: around each of its numbers and each middle of two, and others.
std::vector<float> TryOut(const Definition& format) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits<format.largest; bits += format.mantissa_bits> 8 ? 3 : 1) {
    const double one = ValueOf(bits, format.exponent_bits, format.mantissa_bits);
    const double next = ValueOf(bits + 1, format.exponent_bits, format.mantissa_bits);
    for (double value : {one, (one + next) / 2}) {
      const auto rounded = static_cast<float>(value);
      values.push_back(rounded);
      values.push_back(std::nextafter(rounded, 0.0f));
      values.push_back(std::nextafter(rounded, INFINITY));
    }
  }
  std::mt19937 random(3);
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffu);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

constexpr Definition kBf16Definition = {8, 7, 0x7f7f};
constexpr Definition kF16Definition = {5, 10, 0x7bff};
constexpr Definition kE4m3Definition = {4, 3, 0x7e};

TEST(NumberTypesTest, Bf16RoundsToNearestEven) {
  const double overflow = std::ldexp(1.0 + 255.0 / 256, 127);  // the largest plus half a step
  for (float value : TryOut(kBf16Definition)) {
    const uint32_t expected = value >= overflow ? 0x7f80u : Nearest(kBf16Definition, value);
    ASSERT_EQ(ToBf16(value).bits, expected) << value;
    ASSERT_EQ(ToBf16(-value).bits, expected | 0x8000u) << value;
  }
}

TEST(NumberTypesTest, F16RoundsToNearestEven) {
  for (float value : TryOut(kF16Definition)) {
    const uint32_t expected = value >= 65520.0f ? 0x7c00u : Nearest(kF16Definition, value);
    ASSERT_EQ(ToF16(value).bits, expected) << value;
    ASSERT_EQ(ToF16(-value).bits, expected | 0x8000u) << value;
  }
}

TEST(NumberTypesTest, E4m3RoundsToNearestEvenAndSaturates) {
  for (float value : TryOut(kE4m3Definition)) {
    const uint32_t expected = value >= kE4m3Max ? 0x7eu : Nearest(kE4m3Definition, value);
    ASSERT_EQ(ToE4m3(value).bits, expected) << value;
    ASSERT_EQ(ToE4m3(-value).bits, expected | 0x80u) << value;
  }
  EXPECT_EQ(ToE4m3(INFINITY).bits, 0x7e);
  EXPECT_EQ(ToE4m3(-INFINITY).bits, 0xfe);
}

TEST(NumberTypesTest, InfinityAndNaN) {
  EXPECT_EQ(ToBf16(INFINITY).bits, 0x7f80);
  EXPECT_EQ(ToF16(-INFINITY).bits, 0xfc00);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float value : {nan, -nan, std::bit_cast<float>(0x7f800001u)}) {
    EXPECT_EQ(ToBf16(value).bits, 0x7fff);
    EXPECT_EQ(ToF16(value).bits, 0x7fff);
    EXPECT_EQ(ToE4m3(value).bits, 0x7f);
  }
}

TEST(NumberTypesTest, EveryNumberIsWhatItsBitsSayAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 bf16 = {static_cast<uint16_t>(bits)};
    const F16 f16 = {static_cast<uint16_t>(bits)};
    if ((bits & 0x7f80u) != 0x7f80u) {
      ASSERT_EQ(static_cast<double>(ToFloat(bf16)), ValueOf(bits, 8, 7));
      ASSERT_EQ(ToBf16(ToFloat(bf16)).bits, bits);
    }
    if ((bits & 0x7c00u) != 0x7c00u) {
      ASSERT_EQ(static_cast<double>(ToFloat(f16)), ValueOf(bits, 5, 10));
      ASSERT_EQ(ToF16(ToFloat(f16)).bits, bits);
    }
  }
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const E4m3 value = {static_cast<uint8_t>(bits)};
    if ((bits & 0x7fu) == 0x7fu) {
      ASSERT_TRUE(std::isnan(ToFloat(value)));
    } else {
      ASSERT_EQ(static_cast<double>(ToFloat(value)), ValueOf(bits, 4, 3));
      ASSERT_EQ(ToE4m3(ToFloat(value)).bits, bits);
    }
  }
  EXPECT_EQ(ToFloat(F16{0x7c00}), INFINITY);
  EXPECT_EQ(ToFloat(F16{0xfc00}), -INFINITY);
  EXPECT_TRUE(std::isnan(ToFloat(F16{0x7fff})));
}

}  // namespace
}  // namespace attendant::cuda
