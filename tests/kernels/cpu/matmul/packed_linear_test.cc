// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/packed_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "kernels/cpu/matmul/linear_executor.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::cpu {
namespace {

constexpr int64_t kInputs = 320, kOutputs = 192;

struct Linear {
  explicit Linear(uint32_t seed) : weight(kInputs * kOutputs), bias(kOutputs) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.05f);
    for (float& value : weight) value = normal(random);
    for (float& value : bias) value = normal(random);
  }
  LinearWeights view() const {
    return {{weight.data(), {kOutputs, kInputs}}, {bias.data(), {kOutputs}}};
  }
  float& at(int64_t output, int64_t input) {
    return weight[static_cast<size_t>(output * kInputs + input)];
  }

  std::vector<float> weight, bias;
};

class PackedLinearTest : public testing::Test {
 protected:
  // Null where this machine has no fast kernel.
  const Matmul* Create(DType dtype) {
    const auto level = FindIsaLevel(CpuIsa::kAuto);
    if (!level.ok()) return nullptr;
    auto matmul =
        CreateMatmul(**level, {.dtype = dtype, .k = kInputs, .n = kOutputs, .max_rows = 32});
    if (!matmul.ok()) return nullptr;
    matmul_ = *std::move(matmul);
    arena_.emplace(static_cast<size_t>(matmul_->packed_bytes()) + Arena::kAlignment);
    return matmul_.get();
  }

  std::unique_ptr<Matmul> matmul_;
  std::optional<Arena> arena_;
};

TEST_F(PackedLinearTest, DecomposesTheLargestOutliers) {
  const Matmul* matmul = Create(DType::kInt8);
  if (matmul == nullptr) GTEST_SKIP() << "no fast int8 matmuls here";
  Linear linear(1);
  for (int64_t i = 0; i < 20; ++i) linear.at(i, 3 * i) = 2.0f + static_cast<float>(i);
  const LinearWeights view = linear.view();
  const PackedLinear plain = PackLinear(*matmul, {&view}, *arena_);
  EXPECT_TRUE(plain.outliers.empty());
  Arena arena(static_cast<size_t>(matmul->packed_bytes()) + Arena::kAlignment);
  const PackedLinear decomposed = PackLinear(*matmul, {&view}, arena, {.decompose_outliers = true});
  ASSERT_EQ(decomposed.outliers.size(), kMaxOutliers);
  for (const OutlierWeight& outlier : decomposed.outliers) {
    EXPECT_GE(outlier.output, 4);  // the four smallest of 20 stay
    EXPECT_EQ(outlier.input, 3 * outlier.output);
    EXPECT_EQ(outlier.value, 2.0f + static_cast<float>(outlier.output));
    const auto output = static_cast<size_t>(outlier.output);
    EXPECT_LT(decomposed.column_scales[output], plain.column_scales[output] / 8);
  }
  EXPECT_EQ(decomposed.column_scales[100], plain.column_scales[100]);
}

TEST_F(PackedLinearTest, DividesWeightsByTheSmoothingFactors) {
  const Matmul* matmul = Create(DType::kInt8);
  if (matmul == nullptr) GTEST_SKIP() << "no fast int8 matmuls here";
  Linear linear(1);
  Linear divided = linear;
  std::vector<float> smoothing;
  for (int64_t i = 0; i < kInputs; ++i) {
    smoothing.push_back(i % 2 == 0 ? 0.5f : 4.0f);
    for (int64_t j = 0; j < kOutputs; ++j) divided.at(j, i) /= smoothing.back();
  }
  const LinearWeights view = linear.view(), divided_view = divided.view();
  const PackedLinear packed =
      PackLinear(*matmul, {&view}, *arena_, {.smoothing_factors = smoothing});
  Arena arena(static_cast<size_t>(matmul->packed_bytes()) + Arena::kAlignment);
  const PackedLinear expected = PackLinear(*matmul, {&divided_view}, arena);
  EXPECT_EQ(packed.smoothing_factors, smoothing);
  EXPECT_EQ(packed.column_scales, expected.column_scales);
  EXPECT_EQ(std::vector(packed.weight, packed.weight + packed.weight_bytes),
            std::vector(expected.weight, expected.weight + expected.weight_bytes));
}

// A product with the zero point subtracts the offset: one step off, and every result is.
TEST_F(PackedLinearTest, OffsetsAreTheSumsOfTheQuantizedColumns) {
  const Matmul* matmul = Create(DType::kInt8);
  if (matmul == nullptr) GTEST_SKIP() << "no fast int8 matmuls here";
  Linear linear(5);
  const LinearWeights view = linear.view();
  const PackedLinear packed = PackLinear(*matmul, {&view}, *arena_);
  ASSERT_EQ(packed.column_offsets.size(), static_cast<size_t>(kOutputs));
  for (int64_t j = 0; j < kOutputs; ++j) {
    float largest = 0;
    for (int64_t i = 0; i < kInputs; ++i) largest = std::max(largest, std::abs(linear.at(j, i)));
    const float scale = largest / 127;
    int64_t sum = 0;
    for (int64_t i = 0; i < kInputs; ++i) sum += std::lrint(linear.at(j, i) / scale);
    EXPECT_EQ(packed.column_scales[static_cast<size_t>(j)], scale);
    EXPECT_EQ(packed.column_offsets[static_cast<size_t>(j)], scale * static_cast<float>(sum)) << j;
  }
}

TEST_F(PackedLinearTest, ABiasThatIsAbsentIsZeros) {
  const auto level = FindIsaLevel(CpuIsa::kAuto);
  if (!level.ok()) GTEST_SKIP() << level.status();
  const auto matmul = CreateMatmul(
      **level, {.dtype = DType::kF32, .k = kInputs, .n = 3 * kOutputs, .max_rows = 32});
  ASSERT_TRUE(matmul.ok()) << matmul.status();
  Arena arena((*matmul)->packed_bytes() + Arena::kAlignment);
  const Linear linear(1);
  LinearWeights with = linear.view(), without = with;
  without.bias = {};
  const PackedLinear packed = PackLinear(**matmul, {&with, &without, &with}, arena);
  std::vector<float> expected = linear.bias;
  expected.resize(2 * kOutputs);
  expected.insert(expected.end(), linear.bias.begin(), linear.bias.end());
  EXPECT_EQ(packed.bias, expected);
}

// Slices of the columns, each run alone, give the bits of the whole matmul.
TEST_F(PackedLinearTest, SlicesGiveTheBitsOfTheWhole) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    const Matmul* matmul = Create(dtype);
    if (matmul == nullptr) continue;
    const Linear linear(7);
    const LinearWeights view = linear.view();
    const PackedLinear packed = PackLinear(*matmul, {&view}, *arena_);
    for (const int64_t wanted : {1, 2, 3, 4, 100}) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << ", " << wanted << " slices");
      const SlicedMatmul sliced(*matmul, wanted, 32);
      EXPECT_LE(sliced.slices(), wanted);
      if (wanted == 3) {  // 192 columns are whole blocks
        EXPECT_GT(sliced.slices(), 1);
      }
      std::vector<char> scratchpad(sliced.scratchpad_bytes() + 64);
      LinearExecutor runner(sliced, scratchpad.data());
      std::vector<uint8_t> x(32 * kInputs * 4);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i % 64);  // small numbers
      for (const int64_t rows : {16, 32}) {
        std::vector<float> whole(static_cast<size_t>(rows * kOutputs), 1.0f), parts = whole;
        ASSERT_TRUE(runner.Run(rows, x.data(), packed, nullptr, whole.data()));
        for (int64_t i = 0; i < sliced.slices(); ++i) {
          ASSERT_TRUE(runner.RunSlice(i, rows, x.data(), packed, nullptr, parts.data()));
        }
        EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)), 0);
      }
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
