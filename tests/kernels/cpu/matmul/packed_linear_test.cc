// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/packed_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/matmul/linear_executor.h"
#include "kernels/cpu/simd/isa_level.h"
#include "tests/kernels/cpu/simd/available_kernels.h"

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
  LinearWeights half(int64_t index) const {
    const int64_t first = index * kOutputs / 2;
    return {{weight.data() + first * kInputs, {kOutputs / 2, kInputs}},
            {bias.data() + first, {kOutputs / 2}}};
  }
  float& at(int64_t output, int64_t input) {
    return weight[static_cast<size_t>(output * kInputs + input)];
  }

  std::vector<float> weight, bias;
};

class PackedLinearTest : public testing::Test {
 protected:
  const Matmul* CreateInt8(const IsaLevel& level) {
    matmul_ =
        CreateMatmul(level, {.dtype = DType::kInt8, .k = kInputs, .n = kOutputs, .max_rows = 32})
            .value();
    arena_.emplace(static_cast<size_t>(matmul_->packed_bytes()) + Arena::kAlignment);
    return matmul_.get();
  }
  const Matmul* CreateInt8() { return CreateInt8(**FindIsaLevel(CpuIsa::kAuto)); }

  std::unique_ptr<Matmul> matmul_;
  std::optional<Arena> arena_;
};

TEST_F(PackedLinearTest, DecomposesTheLargestOutliers) {
  const Matmul* matmul = CreateInt8();
  Linear linear(1);
  for (int64_t i = 0; i < 20; ++i) linear.at(i, 3 * i) = 2.0f + static_cast<float>(i);
  const LinearWeights view = linear.view();
  const PackedLinear plain = PackLinear(*matmul, {&view}, *arena_);
  EXPECT_TRUE(plain.outliers.empty());
  Arena arena(matmul->packed_bytes() + Arena::kAlignment);
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
  const Matmul* matmul = CreateInt8();
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
  Arena arena(matmul->packed_bytes() + Arena::kAlignment);
  const PackedLinear expected = PackLinear(*matmul, {&divided_view}, arena);
  EXPECT_EQ(packed.smoothing_factors, smoothing);
  EXPECT_EQ(packed.column_scales, expected.column_scales);
  EXPECT_EQ(std::vector(packed.weight, packed.weight + packed.weight_bytes),
            std::vector(expected.weight, expected.weight + expected.weight_bytes));
}

// Without a cast of infinity: f32 has no scale for the smallest of them.
TEST_F(PackedLinearTest, AColumnOfNothingIsZeros) {
  const Matmul* matmul = CreateInt8();
  Linear linear(5);
  for (int64_t i = 0; i < kInputs; ++i) linear.at(0, i) = 1e-44f;
  for (int64_t i = 0; i < kInputs; ++i) linear.at(1, i) = 1e-36f;
  const LinearWeights view = linear.view();
  const PackedLinear packed = PackLinear(*matmul, {&view}, *arena_);
  EXPECT_EQ(packed.column_offsets[0], 0.0f);
  EXPECT_EQ(packed.column_offsets[1], 0.0f);
  EXPECT_NE(packed.column_offsets[2], 0.0f);
}

// A product with the zero point subtracts the offset: one step off, and every result is.
TEST_F(PackedLinearTest, OffsetsAreTheSumsOfTheQuantizedColumns) {
  const Matmul* matmul = CreateInt8();
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

// With the largest operands a sum is 255 times that of its column, unless one of its parts passes
// the bits that an instruction set has for it.
TEST_F(PackedLinearTest, NoWeightsAreTooLargeForTheLargestOperands) {
  std::vector<const IsaLevel*> levels = AvailableLevels(MatmulChoice::kTiles);
  for (const IsaLevel* level : AvailableLevels(MatmulChoice::kOneDnn)) levels.push_back(level);
  for (const IsaLevel* level : levels) {
    SCOPED_TRACE(absl::StrCat(level->kernels.isa, " ", MatmulChoiceName(level->matmul)));
    const Matmul* matmul = CreateInt8(*level);
    Linear linear(5);
    for (int64_t j = 0; j < kOutputs; ++j) {  // neighbours that are the largest of their column
      const float sign = j % 2 == 0 ? 1.0f : -1.0f;
      linear.at(j, j) = sign * 0.4f;
      if (j % 3 != 0) linear.at(j, j ^ 1) = sign * (j % 3 == 1 ? 0.4f : 0.003f);
    }
    const LinearWeights view = linear.view();
    const PackedLinear packed = PackLinear(*matmul, {&view}, *arena_);
    const std::vector<uint8_t> x(static_cast<size_t>(16 * kInputs + kSpareBytes), 255);
    std::vector<char> scratchpad(matmul->scratchpad_bytes() + 64);
    std::vector<int32_t> y(static_cast<size_t>(16 * kOutputs));
    ASSERT_TRUE(
        matmul->NewExecutor(scratchpad.data())->Run(16, x.data(), packed.weight, {}, y.data()));
    for (size_t j = 0; j < static_cast<size_t>(kOutputs); ++j) {
      EXPECT_EQ(y[j], 255 * std::lround(packed.column_offsets[j] / packed.column_scales[j])) << j;
    }
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

// A gate and up take turns, of as many columns as the matmul says.
TEST_F(PackedLinearTest, AGateAndUpTakeTurns) {
  const IsaLevel& level = **FindIsaLevel(CpuIsa::kAuto);
  const Linear gate(1), up(2);
  const LinearWeights gate_view = gate.view(), up_view = up.view();
  for (const DType dtype : {DType::kBf16, DType::kInt8}) {
    Matmul::Options options{
        .dtype = dtype, .k = kInputs, .n = 2 * kOutputs, .max_rows = 32, .bias = true};
    options.output = MatmulOutput::kGated;
    if (!HasOutput(level, options)) continue;
    const auto gated = CreateMatmul(level, options);
    ASSERT_TRUE(gated.ok()) << gated.status();
    Linear by_turns[2] = {gate, up};  // 2 * kOutputs columns in turns
    const int64_t turn = (*gated)->gate_columns();
    for (int64_t j = 0; j < 2 * kOutputs; ++j) {
      const Linear& from = j / turn % 2 == 0 ? gate : up;
      const auto output = static_cast<size_t>(j / (2 * turn) * turn + j % turn);
      Linear& to = by_turns[j / kOutputs];
      const auto place = static_cast<size_t>(j % kOutputs);
      to.bias[place] = from.bias[output];
      std::copy_n(from.weight.begin() + static_cast<int64_t>(output) * kInputs, kInputs,
                  to.weight.begin() + static_cast<int64_t>(place) * kInputs);
    }
    options.output = MatmulOutput::kSums;
    options.bias = false;
    const auto sums = CreateMatmul(level, options);
    ASSERT_TRUE(sums.ok()) << sums.status();
    const LinearWeights first = by_turns[0].view(), second = by_turns[1].view();
    Arena arena((*gated)->packed_bytes() + Arena::kAlignment),
        expected_arena((*sums)->packed_bytes() + Arena::kAlignment);
    const PackedLinear packed = PackLinear(**gated, {&gate_view, &up_view}, arena);
    const PackedLinear expected = PackLinear(**sums, {&first, &second}, expected_arena);
    EXPECT_EQ(packed.bias, expected.bias);
    EXPECT_EQ(packed.column_scales, expected.column_scales);
    EXPECT_EQ(packed.column_offsets, expected.column_offsets);
    EXPECT_EQ(std::vector(packed.weight, packed.weight + packed.weight_bytes),
              std::vector(expected.weight, expected.weight + expected.weight_bytes));
  }
}

// Slices of the columns, each run alone, give the bits of the whole matmul.
TEST_F(PackedLinearTest, SlicesGiveTheBitsOfTheWhole) {
  const IsaLevel& level = **FindIsaLevel(CpuIsa::kAuto);
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    for (const MatmulOutput output :
         {MatmulOutput::kSums, MatmulOutput::kBf16, MatmulOutput::kAdded, MatmulOutput::kActivated,
          MatmulOutput::kGated}) {
      Matmul::Options options{.dtype = dtype, .k = kInputs, .n = kOutputs, .max_rows = 32};
      options.output = output;
      options.bias = output != MatmulOutput::kSums;
      if (!HasOutput(level, options)) continue;
      const auto matmul = CreateMatmul(level, options);
      ASSERT_TRUE(matmul.ok()) << matmul.status();
      const Linear linear(7);
      const LinearWeights halves[] = {linear.half(0), linear.half(1)};
      Arena arena((*matmul)->packed_bytes() + Arena::kAlignment);
      const PackedLinear packed = PackLinear(**matmul, {&halves[0], &halves[1]}, arena);
      std::vector<uint8_t> x(32 * kInputs * 4);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i % 64);  // small numbers
      std::vector<RowQuantization> quantization(32);
      for (size_t i = 0; i < 32; ++i)
        quantization[i] = {0.01f * static_cast<float>(i + 1), static_cast<int32_t>(i)};
      for (const int64_t wanted : {1, 2, 3, 4, 100}) {
        SCOPED_TRACE(testing::Message() << DTypeName(dtype) << ", output "
                                        << static_cast<int>(output) << ", " << wanted << " slices");
        const SlicedMatmul sliced(**matmul, wanted, 32);
        EXPECT_LE(sliced.slices(), wanted);
        if (wanted == 3) {  // 192 columns are whole blocks
          EXPECT_GT(sliced.slices(), 1);
        }
        std::vector<char> scratchpad(sliced.scratchpad_bytes() + 64);
        LinearExecutor runner(sliced, scratchpad.data());
        for (const int64_t rows : {7, 16, 32}) {
          std::vector<float> whole(32 * kOutputs, 1.0f), parts = whole;
          ASSERT_TRUE(runner.Run(rows, x.data(), quantization.data(), packed, whole.data()));
          for (int64_t i = 0; i < sliced.slices(); ++i) {
            ASSERT_TRUE(
                runner.RunSlice(i, rows, x.data(), quantization.data(), packed, parts.data()));
          }
          const auto bytes = static_cast<size_t>(rows * options.y_row_bytes());
          EXPECT_EQ(std::memcmp(whole.data(), parts.data(), bytes), 0) << rows << " rows";
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
