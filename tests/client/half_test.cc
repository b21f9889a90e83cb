// SPDX-License-Identifier: Apache-2.0
#include "client/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace attendant::client {
namespace {

TEST(HalfTest, EveryF16ComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = FromF16(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(FromF16(ToF16(value))));
    } else {
      EXPECT_EQ(ToF16(value), half) << value;
    }
  }
}

TEST(HalfTest, F16RoundsToTheNearestAndTiesToEven) {
  for (int bits : {0x0000, 0x0001, 0x03ff, 0x0400, 0x3bff, 0x3c00, 0x7bfe}) {
    const float low = FromF16(static_cast<uint16_t>(bits));
    const float high = FromF16(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact in f32
    const int even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(ToF16(middle), even) << bits;
    EXPECT_EQ(ToF16(-middle), even | 0x8000) << bits;
    EXPECT_EQ(ToF16(std::nextafter(middle, high)), bits + 1) << bits;
    EXPECT_EQ(ToF16(std::nextafter(middle, low)), bits) << bits;
  }
  EXPECT_EQ(ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(ToF16(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(ToF16(1e-10f), 0);
}

TEST(HalfTest, Bf16RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(ToBf16(1.0f), 0x3f80);
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(FromBf16(0xc000), -2.0f);
}

}  // namespace
}  // namespace attendant::client
