// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/float_values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace attendant {
namespace {

template <typename Stored>
std::vector<float> Convert(const char* dtype, const std::vector<Stored>& stored) {
  // One byte off, so that no alignment is taken for granted.
  std::vector<std::byte> bytes(1 + stored.size() * sizeof(Stored));
  std::memcpy(bytes.data() + 1, stored.data(), stored.size() * sizeof(Stored));
  std::vector<float> values(stored.size());
  EXPECT_TRUE(ConvertToFloat(dtype, std::span(bytes).subspan(1), values).ok());
  return values;
}

std::vector<uint16_t> Every16Bits() {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

// The format's definition, without bit tricks.
double ExpectedF16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(FloatValues, EveryF16) {
  const std::vector<uint16_t> all = Every16Bits();
  const std::vector<float> values = Convert("F16", all);
  for (size_t i = 0; i < all.size(); ++i) {
    const double expected = ExpectedF16(all[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else {
      ASSERT_EQ(values[i], expected) << i;
      ASSERT_EQ(std::signbit(values[i]), std::signbit(expected)) << i;
    }
  }
}

TEST(FloatValues, EveryBf16) {
  const std::vector<uint16_t> all = Every16Bits();
  const std::vector<float> values = Convert("BF16", all);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), static_cast<uint32_t>(i) << 16);
  }
}

TEST(FloatValues, F64RoundsAndOverflows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values =
      Convert("F64", std::vector<double>{1.5, 0.1, -1e300, 1e300, 1e-300});
  EXPECT_EQ(values, (std::vector<float>{1.5f, 0.1f, -kInfinity, kInfinity, 0.0f}));
}

TEST(FloatValues, UnalignedF32) {
  const std::vector<float> stored = {1.0f, -0.0f, 3.25f};
  EXPECT_EQ(Convert("F32", stored), stored);
}

TEST(FloatValues, RefusesOtherTypes) {
  EXPECT_EQ(ConvertToFloat("I64", {}, {}).ToString(),
            "INVALID_ARGUMENT: dtype is `I64`, expected F32, F16, BF16 or F64");
}

TEST(FloatValues, FindsWhatIsNotFinite) {
  EXPECT_EQ(FirstNonFinite({}), -1);
  EXPECT_EQ(FirstNonFinite(std::vector<float>{1, std::numeric_limits<float>::max()}), -1);
  EXPECT_EQ(FirstNonFinite(std::vector<float>{1, std::nanf("")}), 1);
  EXPECT_EQ(FirstNonFinite(std::vector<float>{-std::numeric_limits<float>::infinity(), 0}), 0);
  // It looks at blocks of 4096.
  for (size_t place : {size_t{4095}, size_t{4096}, size_t{9998}, size_t{9999}}) {
    std::vector<float> values(10000, -std::numeric_limits<float>::max());
    values[place] = std::nanf("");
    values[9999] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(FirstNonFinite(values), static_cast<int64_t>(place));
  }
}

}  // namespace
}  // namespace attendant
