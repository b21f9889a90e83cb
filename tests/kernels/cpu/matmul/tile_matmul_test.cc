// SPDX-License-Identifier: Apache-2.0
// Matmuls of every instruction set and format beside plain loops, at every count of rows and with
// widths at the edges of panels, vectors and groups.
#include "kernels/cpu/matmul/tile_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "kernels/core/base/half.h"
#include "kernels/cpu/simd/vector_kernels.h"
#include "tests/kernels/cpu/simd/available_kernels.h"
#include "tests/support/guarded_allocator.h"

namespace attendant::cpu {
namespace {

constexpr int64_t kMaxRows = 40;  // several tiles of every height
constexpr uint32_t kUntouched = 0x5a5a5a5a;

// x [rows, k], with room for RoundUpRows of them, a weight [n, k] and a bias [n], as bytes of
// the format and as the numbers that they stand for. Values from small sets: what must be exact is.
struct Problem {
  Problem(DType dtype, int64_t inputs, int64_t outputs, int64_t x_rows = kMaxRows)
      : rows(x_rows), k(inputs), n(outputs) {
    std::mt19937 random(static_cast<uint32_t>(k * 1000 + n));
    const auto draw = [&](int low, int high) {
      return static_cast<float>(std::uniform_int_distribution(low, high)(random));
    };
    for (int64_t i = 0; i < rows * k; ++i) {
      x.push_back(dtype == DType::kInt8 ? draw(0, 255) : draw(-1000, 1000) / 512);
      if (dtype == DType::kF32) Append(x.back());
      if (dtype == DType::kInt8) Append(static_cast<uint8_t>(x.back()));
      if (dtype != DType::kBf16) continue;
      Append(ToBf16(x.back()));
      x.back() = FromBf16(ToBf16(x.back()));
    }
    const size_t row_bytes = x_bytes.size() / static_cast<size_t>(rows);
    x_bytes.resize(
        row_bytes * static_cast<size_t>(RoundUpRows(rows)) + static_cast<size_t>(kSpareBytes),
        std::byte{0xff});  // NaN, or -1
    for (int64_t i = 0; i < n * k; ++i) {
      weight.push_back(dtype == DType::kInt8 ? draw(-127, 127) : draw(-1000, 1000) / 512);
      s8_weight.push_back(static_cast<int8_t>(weight.back()));
    }
    for (int64_t i = 0; i < n; ++i) bias.push_back(draw(-1000, 1000) / 100);
  }

  template <typename T>
  void Append(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    x_bytes.insert(x_bytes.end(), bytes, bytes + sizeof(value));
  }
  TensorView<const float, 2> weight_view() const { return {weight.data(), {n, k}}; }

  // Of 8 bits: one in `share` keeps its size, the others shrink.
  void KeepLargeWeights(int share) {
    for (size_t i = 0; i < weight.size(); ++i) {
      if (static_cast<int>(i * 7919 % 1000) >= 1000 / share) weight[i] = std::trunc(weight[i] / 3);
      s8_weight[i] = static_cast<int8_t>(weight[i]);
    }
  }

  int64_t rows, k, n;
  std::vector<float> x, weight, bias;
  std::vector<int8_t> s8_weight;
  std::vector<std::byte> x_bytes;
};

class TileMatmulTest : public testing::TestWithParam<std::tuple<const VectorKernels*, DType>> {
 protected:
  void SetUp() override {
    if (!TileMatmul::Covers(kernels(), {.dtype = dtype(), .k = 4, .n = 1})) {
      GTEST_SKIP() << "oneDNN's are used";
    }
  }
  // Of y that may be written: AMX tiles have 16 rows.
  int64_t RowsOfY(int64_t rows) const {
    const bool whole_tiles = &kernels() == &kAmxKernels && dtype() != DType::kF32;
    return whole_tiles ? RoundUpRows(rows) : rows;
  }
  const VectorKernels& kernels() const { return *std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }

  std::vector<std::byte> Pack(const TileMatmul& matmul, const Problem& problem) const {
    std::vector<std::byte> packed(static_cast<size_t>(matmul.packed_bytes()));
    if (dtype() == DType::kInt8) {
      matmul.Pack(TensorView<const int8_t, 2>(problem.s8_weight.data(), {problem.n, problem.k}),
                  packed.data());
    } else {
      matmul.Pack(problem.weight_view(), packed.data());
    }
    return packed;
  }

  // Of y's bits.
  double ValueOf(uint32_t bits) const {
    if (dtype() == DType::kInt8) return std::bit_cast<int32_t>(bits);
    return std::bit_cast<float>(bits);
  }

  // x w [+ bias] as its format rounds the weight, and how far a sum in f32 may be from it.
  std::pair<double, double> Expected(const Problem& problem, int64_t row, int64_t column,
                                     bool bias) const {
    double sum = bias ? problem.bias[static_cast<size_t>(column)] : 0, size = 1;
    for (int64_t i = 0; i < problem.k; ++i) {
      float weight = problem.weight[static_cast<size_t>(column * problem.k + i)];
      if (dtype() == DType::kBf16) weight = FromBf16(ToBf16(weight));
      const double term =
          static_cast<double>(problem.x[static_cast<size_t>(row * problem.k + i)]) * weight;
      sum += term;
      size += std::abs(term);
    }
    return {sum, dtype() == DType::kInt8 ? 0 : size * 1e-6};
  }

  void CheckEveryCountOfRows(int64_t k, int64_t n) const {
    CheckEveryCountOfRows(Problem(dtype(), k, n));
  }

  void CheckEveryCountOfRows(const Problem& problem) const {
    const int64_t max_rows = problem.rows, k = problem.k, n = problem.n;
    SCOPED_TRACE(testing::Message() << "k " << k << ", n " << n);
    const bool has_bias = dtype() != DType::kInt8;
    const TileMatmul matmul(
        kernels(), {.dtype = dtype(), .k = k, .n = n, .max_rows = max_rows, .bias = has_bias});
    const auto packed = Pack(matmul, problem);
    const auto runner = matmul.NewExecutor(nullptr);
    const MatmulTerms bias{.bias = has_bias ? problem.bias.data() : nullptr};
    std::vector<uint32_t> all(static_cast<size_t>(RowsOfY(max_rows) * n));
    ASSERT_TRUE(runner->Run(max_rows, problem.x_bytes.data(), packed.data(), bias, all.data()));
    for (int64_t i = 0; i < max_rows * n; ++i) {
      const auto [expected, tolerance] = Expected(problem, i / n, i % n, has_bias);
      ASSERT_NEAR(ValueOf(all[static_cast<size_t>(i)]), expected, tolerance)
          << "row " << i / n << ", column " << i % n;
    }
    for (int64_t rows = 1; rows < max_rows; ++rows) {
      std::vector<uint32_t> some(static_cast<size_t>(RowsOfY(rows) * n + 1), kUntouched);
      ASSERT_TRUE(runner->Run(rows, problem.x_bytes.data(), packed.data(), bias, some.data()));
      ASSERT_EQ(std::memcmp(some.data(), all.data(), static_cast<size_t>(rows * n) * 4), 0)
          << rows << " rows have other bits";
      ASSERT_EQ(some.back(), kUntouched) << "written beyond " << rows << " rows";
    }
  }
};

TEST_P(TileMatmulTest, EveryCountOfRows) {
  for (const int64_t n : {1, 8, 17, 64, 100, 129}) {
    for (const int64_t k : {4, 36, 100, 256}) CheckEveryCountOfRows(k, n);
  }
}

TEST_P(TileMatmulTest, RowsThatDoNotFillTheirLastGroup) {
  for (const int64_t k : {1, 2, 3, 39, 261}) {
    if (!TileMatmul::Covers(kernels(), {.dtype = dtype(), .k = k, .n = 17})) continue;
    CheckEveryCountOfRows(k, 17);
  }
}

// More of them than the engine's blocks of rows have.
TEST_P(TileMatmulTest, EveryCountOfManyRows) {
  CheckEveryCountOfRows(Problem(dtype(), 36, 17, 300));
}

// Below VNNI these weights stand beside others than in their order: with few large ones all, with
// more of them not in every panel, and some of them behind all others.
TEST_P(TileMatmulTest, FewLargeWeights) {
  if (dtype() != DType::kInt8) GTEST_SKIP() << "of 8 bits";
  for (const int share : {1000, 20, 8}) {
    for (const int64_t k : {15, 100, 384, 1540, 3076}) {
      SCOPED_TRACE(testing::Message() << "one in " << share << " is large");
      Problem problem(dtype(), k, 129);
      problem.KeepLargeWeights(share);
      CheckEveryCountOfRows(problem);
    }
  }
}

// Two of their products are more than 16 bits hold.
TEST_P(TileMatmulTest, NeighboursOfTheLargestWeights) {
  if (dtype() != DType::kInt8) GTEST_SKIP() << "of 8 bits";
  Problem problem(dtype(), 8, 8);
  std::fill(problem.x.begin(), problem.x.end(), 255.0f);
  std::fill(problem.x_bytes.begin(), problem.x_bytes.end(), std::byte{255});
  for (size_t i = 0; i < problem.weight.size(); ++i) {
    problem.s8_weight[i] = i / 8 % 2 == 0 ? 127 : -128;
    problem.weight[i] = problem.s8_weight[i];
  }
  CheckEveryCountOfRows(problem);
}

// Tiles take a deep k in parts.
TEST_P(TileMatmulTest, EveryCountOfRowsOfADeepK) {
  const int64_t values_of_4_bytes = dtype() == DType::kF32 ? 1 : dtype() == DType::kBf16 ? 2 : 4;
  for (const int64_t n : {17, 129}) CheckEveryCountOfRows(3076 * values_of_4_bytes, n);
}

// A bias may end where its memory does.
TEST_P(TileMatmulTest, ReadsNothingBehindTheBias) {
  if (dtype() == DType::kInt8) GTEST_SKIP() << "8-bit matmuls have none";
  for (const int64_t n : {1, 15, 17, 40, 100}) {
    const TileMatmul matmul(
        kernels(), {.dtype = dtype(), .k = 64, .n = n, .max_rows = kMaxRows, .bias = true});
    const Problem problem(dtype(), 64, n);
    const auto packed = Pack(matmul, problem);
    const GuardedVector<float> bias(problem.bias.begin(), problem.bias.end());
    std::vector<float> y(static_cast<size_t>(RowsOfY(7) * n));
    ASSERT_TRUE(matmul.NewExecutor(nullptr)->Run(7, problem.x_bytes.data(), packed.data(),
                                                 {.bias = bias.data()}, y.data()));
    const auto [expected, tolerance] = Expected(problem, 6, n - 1, true);
    EXPECT_NEAR(y[static_cast<size_t>(7 * n - 1)], expected, tolerance);
  }
}

// x has room for whole blocks of rows and, of 8 bits, for what fills up the last group.
TEST_P(TileMatmulTest, ReadsNothingBehindX) {
  for (const int64_t k : {4, 18, 36, 60}) {
    constexpr int64_t kRows = kRowGranularity, kOutputs = 40;
    if (!TileMatmul::Covers(kernels(), {.dtype = dtype(), .k = k, .n = kOutputs})) continue;
    const bool bias = dtype() != DType::kInt8;
    const TileMatmul matmul(
        kernels(), {.dtype = dtype(), .k = k, .n = kOutputs, .max_rows = kRows, .bias = bias});
    Problem problem(dtype(), k, kOutputs, kRows);
    if (dtype() == DType::kInt8) {
      problem.KeepLargeWeights(1000);
    } else {
      problem.x_bytes.resize(problem.x_bytes.size() - kSpareBytes);
    }
    const GuardedVector<std::byte> x(problem.x_bytes.begin(), problem.x_bytes.end());
    const auto packed = Pack(matmul, problem);
    std::vector<uint32_t> y(static_cast<size_t>(kRows * kOutputs));
    const MatmulTerms terms{.bias = bias ? problem.bias.data() : nullptr};
    ASSERT_TRUE(matmul.NewExecutor(nullptr)->Run(kRows, x.data(), packed.data(), terms, y.data()));
    const auto [expected, tolerance] = Expected(problem, kRows - 1, kOutputs - 1, bias);
    EXPECT_NEAR(ValueOf(y.back()), expected, tolerance) << "k " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, TileMatmulTest,
                         testing::Combine(testing::ValuesIn(AvailableKernels()),
                                          testing::Values(DType::kF32, DType::kBf16, DType::kInt8)),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)->isa) + "_" +
                                  std::string(DTypeName(std::get<1>(parameter.param)));
                         });

// Groups of 4 bytes that a row does not fill are oneDNN's in bf16, but for AMX.
TEST(TileMatmulCoversTest, WholeGroupsOnly) {
  for (const VectorKernels* kernels : AvailableKernels()) {
    EXPECT_TRUE(TileMatmul::Covers(*kernels, {.dtype = DType::kF32, .k = 1, .n = 1}));
    const bool amx = kernels == &kAmxKernels;
    EXPECT_EQ(TileMatmul::Covers(*kernels, {.dtype = DType::kBf16, .k = 7, .n = 1}), amx);
    EXPECT_TRUE(TileMatmul::Covers(*kernels, {.dtype = DType::kInt8, .k = 6, .n = 1}));
  }
}

}  // namespace
}  // namespace attendant::cpu
