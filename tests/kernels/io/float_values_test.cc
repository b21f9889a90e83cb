// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/float_values.h"

#include <gtest/gtest.h>

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

TEST(FloatValues, F16AndBf16) {
  const std::vector<uint16_t> f16 = {0x3c00, 0xc000, 0x0001, 0xfc00};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Convert("F16", f16), (std::vector<float>{1, -2, 0x1p-24f, -kInfinity}));
  const std::vector<uint16_t> bf16 = {0x3f80, 0xc000, 0x0001, 0xff80};
  EXPECT_EQ(Convert("BF16", bf16), (std::vector<float>{1, -2, 0x1p-133f, -kInfinity}));
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
