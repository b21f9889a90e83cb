// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/weight_upload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace attendant::cuda {
namespace {

TEST(ConvertToStatesTest, RoundsAndStaysFinite) {
  const std::vector<float> values = {0.0f, -1.0f, 1.00390625f, 1e-8f, 70000.0f, -3.4028234e38f};
  std::vector<Bf16> bf16(values.size());
  std::vector<F16> f16(values.size());
  std::vector<float> f32(values.size());
  const auto count = static_cast<int64_t>(values.size());
  ConvertToStates(DType::kBf16, values.data(), count, bf16.data());
  ConvertToStates(DType::kF16, values.data(), count, f16.data());
  ConvertToStates(DType::kF32, values.data(), count, f32.data());
  EXPECT_EQ(f32, values);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(ToFloat(bf16[i]))) << values[i];
    EXPECT_TRUE(std::isfinite(ToFloat(f16[i]))) << values[i];
    EXPECT_LE(std::abs(ToFloat(bf16[i]) - values[i]), std::abs(values[i]) / 256);
  }
  EXPECT_EQ(ToFloat(bf16[2]), 1.0f) << "ties to even";
  EXPECT_EQ(ToFloat(f16[2]), 1.00390625f);
  EXPECT_EQ(ToFloat(f16[4]), 65504.0f) << "the largest, not infinity";
}

TEST(ConvertToStatesTest, Fp8HasBf16States) {
  const float value = 3.14159f;
  Bf16 a{}, b{};
  ConvertToStates(DType::kFp8, &value, 1, &a);
  ConvertToStates(DType::kBf16, &value, 1, &b);
  EXPECT_EQ(a.bits, b.bits);
}

TEST(QuantizeTest, TheLargestOfARowIsE4m3sLargest) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> row(256);
    for (float& value : row) value = normal(random) * std::ldexp(1.0f, trial - 50);
    const float scale = E4m3Scale(row.data(), 256);
    std::vector<uint8_t> quantized(256);
    QuantizeToE4m3(row.data(), 256, scale, quantized.data());
    float largest = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      const float back = ToFloat(E4m3{quantized[i]}) * scale;
      largest = std::max(largest, std::abs(ToFloat(E4m3{quantized[i]})));
      // Four significant bits, or half of the smallest step.
      EXPECT_LE(std::abs(back - row[i]), std::max(std::abs(row[i]) / 16, scale * 0x1p-10f));
    }
    EXPECT_EQ(largest, kE4m3Max);
  }
}

TEST(QuantizeTest, RowsWithoutSizeHaveScaleOne) {
  const std::vector<float> zeros(8, 0.0f), tiny(8, 1e-31f);
  EXPECT_EQ(E4m3Scale(zeros.data(), 8), 1.0f);
  EXPECT_EQ(E4m3Scale(tiny.data(), 8), 1.0f);
}

}  // namespace
}  // namespace attendant::cuda
