// SPDX-License-Identifier: Apache-2.0
// The outputs that tiles make of their sums: the bits that the row kernels make of the same
// sums in a pass of their own, for every instruction set that has the output.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/core/base/half.h"
#include "kernels/cpu/matmul/tile_matmul.h"
#include "kernels/cpu/simd/activation_kernel.h"
#include "tests/kernels/cpu/simd/available_kernels.h"

namespace attendant::cpu {
namespace {

constexpr int64_t kMaxRows = 40;
constexpr float kUntouched = 1234.5f;
constexpr Activation kActivations[] = {Activation::kGeluErf, Activation::kGeluTanh,
                                       Activation::kRelu, Activation::kSilu};

class Problem;

class MatmulOutputsTest : public testing::TestWithParam<std::tuple<const VectorKernels*, DType>> {
 protected:
  const VectorKernels& kernels() const { return *std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  bool int8() const { return dtype() == DType::kInt8; }
  const RowKernels& rows() const { return int8() ? kernels().int8 : kernels().bf16; }

  Matmul::Options OptionsFor(MatmulOutput output, int64_t k, int64_t n) const {
    Matmul::Options options{.dtype = dtype(), .k = k, .n = n, .max_rows = kMaxRows};
    options.output = output;
    options.bias = output != MatmulOutput::kSums || !int8();
    return options;
  }
  bool Has(const Matmul::Options& options) const { return TileMatmul::Covers(kernels(), options); }
  void ExpectBitsOf(RowKernels::Activate activate, const TileMatmul& matmul, const Problem& given,
                    const Problem& sums) const;
};

// A matmul of one shape: what goes in, and its sums as the tiles alone leave them.
class Problem {
 public:
  Problem(const VectorKernels& kernels, const Matmul::Options& sums)
      : dtype_(sums.dtype), k_(sums.k), n_(sums.n) {
    std::mt19937 random(static_cast<uint32_t>(k_ * 1000 + n_));
    std::normal_distribution<float> normal(0, 1);
    const auto rows = RoundUpRows(kMaxRows);
    for (int64_t i = 0; i < rows * k_; ++i) {
      if (dtype_ == DType::kInt8) {
        u8_.push_back(static_cast<uint8_t>(random() % 256));
      } else {
        bf16_.push_back(ToBf16(normal(random)));
      }
    }
    for (int64_t i = 0; i < n_ * k_; ++i) {
      weight_.push_back(normal(random));
      s8_weight_.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
    }
    for (int64_t i = 0; i < n_; ++i) {
      bias.push_back(normal(random));
      column_scales.push_back(0.0002f * static_cast<float>(1 + i % 7));
      column_offsets.push_back(0.05f * normal(random));
    }
    for (int64_t i = 0; i < rows; ++i) {
      quantization.push_back({0.02f + 0.001f * static_cast<float>(i), static_cast<int32_t>(3 * i)});
    }
    sums_.resize(static_cast<size_t>(rows * n_));
    EXPECT_TRUE(Run(TileMatmul(kernels, sums), kMaxRows, sums_.data()));
  }

  bool Run(const TileMatmul& matmul, int64_t rows, void* y) const {
    std::vector<std::byte> packed(static_cast<size_t>(matmul.packed_bytes()));
    MatmulTerms terms;
    if (matmul.options().bias) terms.bias = bias.data();
    if (dtype_ == DType::kInt8) {
      matmul.Pack(TensorView<const int8_t, 2>(s8_weight_.data(), {n_, k_}), packed.data());
      terms.quantization = quantization.data();
      terms.column_scales = column_scales.data();
      terms.column_offsets = column_offsets.data();
      return matmul.NewExecutor(nullptr)->Run(rows, u8_.data(), packed.data(), terms, y);
    }
    matmul.Pack(TensorView<const float, 2>(weight_.data(), {n_, k_}), packed.data());
    return matmul.NewExecutor(nullptr)->Run(rows, bf16_.data(), packed.data(), terms, y);
  }

  // A row of the sums as a row kernel reads it.
  MatmulRow row(int64_t index) const {
    return {sums_.data() + index * n_, &quantization[static_cast<size_t>(index)],
            column_scales.data(), column_offsets.data()};
  }
  // Of sums of bf16, which have it already, zeros.
  std::vector<float> bias_beside_sums() const {
    return dtype_ == DType::kInt8 ? bias : std::vector<float>(bias.size());
  }
  // The real number of a sum.
  float At(int64_t row, int64_t column) const {
    const float sum = sums_[static_cast<size_t>(row * n_ + column)];
    if (dtype_ != DType::kInt8) return sum;
    int32_t whole;
    std::memcpy(&whole, &sum, sizeof(whole));
    const RowQuantization& of_row = quantization[static_cast<size_t>(row)];
    const auto j = static_cast<size_t>(column);
    const float scaled = static_cast<float>(whole) * column_scales[j];
    const float shifted =
        std::fma(-static_cast<float>(of_row.zero_point), column_offsets[j], scaled);
    return std::fma(shifted, of_row.scale, bias[j]);
  }
  // The same problem with the gate's columns before those of up, which took turns of `turn`.
  Problem GateFirst(int64_t turn) const {
    Problem sorted = *this;
    for (int64_t j = 0; j < n_; ++j) {
      const int64_t to = (j / turn % 2) * (n_ / 2) + j / (2 * turn) * turn + j % turn;
      const auto from = static_cast<size_t>(j), place = static_cast<size_t>(to);
      sorted.bias[place] = bias[from];
      sorted.column_scales[place] = column_scales[from];
      sorted.column_offsets[place] = column_offsets[from];
      for (int64_t row = 0; row < kMaxRows; ++row)
        sorted.sums_[static_cast<size_t>(row * n_ + to)] = sums_[static_cast<size_t>(row * n_ + j)];
    }
    return sorted;
  }

  std::vector<float> bias, column_scales, column_offsets;
  std::vector<RowQuantization> quantization;

 private:
  DType dtype_;
  int64_t k_, n_;
  std::vector<uint8_t> u8_;
  std::vector<uint16_t> bf16_;
  std::vector<float> weight_;
  std::vector<int8_t> s8_weight_;
  std::vector<float> sums_;  // or s32
};

// y [rows, width] of `matmul`, whatever the rest of the last row of memory holds.
template <typename T>
std::vector<T> RunFor(const Problem& problem, const TileMatmul& matmul, int64_t rows, T untouched) {
  const auto values = static_cast<size_t>(rows * matmul.options().y_width(matmul.options().n));
  std::vector<T> y(values + 1, untouched);
  EXPECT_TRUE(problem.Run(matmul, rows, y.data()));
  EXPECT_EQ(y.back(), untouched) << "written beyond " << rows << " rows";
  y.pop_back();
  return y;
}

TEST_P(MatmulOutputsTest, RoundsToBf16) {
  for (const int64_t k : {64, 100, 4100}) {
    for (const int64_t n : {16, 31, 100, 129}) {
      const Matmul::Options options = OptionsFor(MatmulOutput::kBf16, k, n);
      if (!Has(options)) GTEST_SKIP() << "oneDNN or the row kernels do it";
      const Problem problem(kernels(), OptionsFor(MatmulOutput::kSums, k, n));
      for (const int64_t count : {1L, 7L, 33L, kMaxRows}) {
        const auto y =
            RunFor<uint16_t>(problem, TileMatmul(kernels(), options), count, uint16_t{0x5a5a});
        for (size_t i = 0; i < y.size(); ++i) {
          const auto place = static_cast<int64_t>(i);
          ASSERT_EQ(y[i], ToBf16(problem.At(place / n, place % n))) << i << " of k " << k;
        }
      }
    }
  }
}

TEST_P(MatmulOutputsTest, AddsToWhatIsThere) {
  for (const int64_t k : {64, 100, 4100}) {
    for (const int64_t n : {16, 31, 100, 129}) {
      const Matmul::Options options = OptionsFor(MatmulOutput::kAdded, k, n);
      if (!Has(options)) GTEST_SKIP() << "the row kernels do it";
      const Problem problem(kernels(), OptionsFor(MatmulOutput::kSums, k, n));
      for (const int64_t count : {1L, 7L, 33L, kMaxRows}) {
        const auto y = RunFor(problem, TileMatmul(kernels(), options), count, kUntouched);
        for (size_t i = 0; i < y.size(); ++i) {
          const auto place = static_cast<int64_t>(i);
          ASSERT_EQ(y[i], kUntouched + problem.At(place / n, place % n)) << i << " of k " << k;
        }
      }
    }
  }
}

// y of `matmul` for `given` has the bits of `activate` for the sums of `sums`, the same problem.
void MatmulOutputsTest::ExpectBitsOf(RowKernels::Activate activate, const TileMatmul& matmul,
                                     const Problem& given, const Problem& sums) const {
  const int64_t width = matmul.options().y_width(matmul.options().n);
  const std::vector<float> bias = sums.bias_beside_sums();
  std::vector<float> activated(static_cast<size_t>(width));
  std::vector<uint16_t> bf16(static_cast<size_t>(width));
  std::vector<uint8_t> u8(static_cast<size_t>(width));
  RowQuantization quantization;
  for (const int64_t count : {3L, kMaxRows}) {
    const auto real = int8() ? RunFor(given, matmul, count, kUntouched) : std::vector<float>();
    const auto rounded =
        int8() ? std::vector<uint16_t>() : RunFor<uint16_t>(given, matmul, count, uint16_t{0x5a5a});
    for (int64_t row = 0; row < count; ++row) {
      // The row kernel of int8 leaves the real numbers in its scratch.
      activate(sums.row(row), bias.data(), width, activated.data(),
               {.values = int8() ? static_cast<void*>(u8.data()) : bf16.data(),
                .quantization = &quantization});
      if (int8()) {
        ASSERT_EQ(std::memcmp(real.data() + row * width, activated.data(), activated.size() * 4), 0)
            << "row " << row << ", width " << width;
      } else {
        ASSERT_EQ(std::memcmp(rounded.data() + row * width, bf16.data(), bf16.size() * 2), 0)
            << "row " << row << ", width " << width;
      }
    }
  }
}

TEST_P(MatmulOutputsTest, Activates) {
  for (const Activation activation : kActivations) {
    for (const int64_t n : {16, 31, 32, 100}) {
      Matmul::Options options = OptionsFor(MatmulOutput::kActivated, 100, n);
      options.activation = activation;
      if (!Has(options)) GTEST_SKIP() << "the row kernels do it";
      const Problem problem(kernels(), OptionsFor(MatmulOutput::kSums, 100, n));
      ExpectBitsOf(ActivationKernel(rows().activate, activation), TileMatmul(kernels(), options),
                   problem, problem);
    }
  }
}

TEST_P(MatmulOutputsTest, Gates) {
  for (const Activation activation : kActivations) {
    for (const int64_t n : {128, 384}) {
      Matmul::Options options = OptionsFor(MatmulOutput::kGated, 100, n);
      options.activation = activation;
      if (!Has(options)) GTEST_SKIP() << "the row kernels do it";
      const TileMatmul matmul(kernels(), options);
      const Problem by_turns(kernels(), OptionsFor(MatmulOutput::kSums, 100, n));
      ExpectBitsOf(ActivationKernel(rows().activate_gated, activation), matmul, by_turns,
                   by_turns.GateFirst(matmul.gate_columns()));
    }
  }
}

// A gate and its up lie in one panel, all of which must be full; whole numbers have no bias; oneDNN
// has none of it.
TEST_P(MatmulOutputsTest, AreAskedFor) {
  const Matmul::Options sums = OptionsFor(MatmulOutput::kSums, 64, 128);
  if (!Has(sums)) GTEST_SKIP() << "oneDNN's are used";
  Matmul::Options biased = sums;
  biased.bias = true;
  EXPECT_EQ(Has(biased), !int8());
  if (!Has(OptionsFor(MatmulOutput::kActivated, 64, 128))) GTEST_SKIP() << "the row kernels do it";
  for (const MatmulChoice choice :
       {MatmulChoice::kAuto, MatmulChoice::kTiles, MatmulChoice::kOneDnn}) {
    const IsaLevel level{
        .isa = CpuIsa::kAuto, .matmul = choice, .kernels = kernels(), .bf16 = true};
    for (const MatmulOutput output : {MatmulOutput::kActivated, MatmulOutput::kGated})
      EXPECT_EQ(HasOutput(level, OptionsFor(output, 64, 128)), choice != MatmulChoice::kOneDnn);
  }
  EXPECT_FALSE(Has(OptionsFor(MatmulOutput::kGated, 64, 120)));
}

// Which instruction set makes what: a row kernel that takes its place would go unseen.
TEST(MatmulOutputsOfLevelsTest, AreThese) {
  for (const VectorKernels* kernels : AvailableKernels()) {
    SCOPED_TRACE(kernels->isa);
    const bool amx = kernels == &kAmxKernels, bf16 = amx || kernels == &kAvx512Bf16Kernels;
    const auto has = [&](DType dtype, MatmulOutput output) {
      Matmul::Options options{.dtype = dtype, .k = 64, .n = 128, .max_rows = 1, .bias = true};
      options.output = output;
      return TileMatmul::Covers(*kernels, options);
    };
    EXPECT_EQ(has(DType::kBf16, MatmulOutput::kBf16), bf16);
    EXPECT_EQ(has(DType::kBf16, MatmulOutput::kActivated), bf16);
    EXPECT_EQ(has(DType::kBf16, MatmulOutput::kGated), bf16);
    EXPECT_EQ(has(DType::kBf16, MatmulOutput::kAdded), amx);
    EXPECT_EQ(has(DType::kInt8, MatmulOutput::kBf16), bf16);
    for (const MatmulOutput output :
         {MatmulOutput::kAdded, MatmulOutput::kActivated, MatmulOutput::kGated})
      EXPECT_EQ(has(DType::kInt8, output), amx) << static_cast<int>(output);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, MatmulOutputsTest,
                         testing::Combine(testing::ValuesIn(AvailableKernels()),
                                          testing::Values(DType::kBf16, DType::kInt8)),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)->isa) + "_" +
                                  std::string(DTypeName(std::get<1>(parameter.param)));
                         });

}  // namespace
}  // namespace attendant::cpu
