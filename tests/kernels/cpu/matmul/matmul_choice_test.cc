// SPDX-License-Identifier: Apache-2.0
// Every choice of who multiplies, on every instruction set that this machine has: the matmul is the
// one asked for, is right, and reads nothing that lies behind its rows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/core/base/half.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::cpu {
namespace {

constexpr int64_t kMaxRows = 48;

class MatmulChoiceTest : public testing::TestWithParam<std::tuple<CpuIsa, MatmulChoice>> {
 protected:
  void SetUp() override {
    const auto level = FindIsaLevel(std::get<0>(GetParam()), std::get<1>(GetParam()));
    if (!level.ok()) GTEST_SKIP() << level.status();
    level_ = *level;
  }
  std::vector<DType> float_dtypes() const {
    return level_->bf16 ? std::vector{DType::kF32, DType::kBf16} : std::vector{DType::kF32};
  }

  const IsaLevel* level_ = nullptr;
};

// Elsewhere the tiles stand in for oneDNN: it is not held down here, and is slow on AVX2 alone; in
// int8 it is asked only where its sums are exact.
bool OneDnnComputes(const IsaLevel& level, DType dtype) {
  if (dtype == DType::kInt8) {
    return level.isa == CpuIsa::kAvx2Vnni || level.isa >= CpuIsa::kAvx512Vnni;
  }
  return ChooseCpuIsa(CpuIsa::kAuto, ReadCpuIdWords()).value() >= CpuIsa::kAvx512;
}

TEST_P(MatmulChoiceTest, IsTheOneAskedFor) {
  EXPECT_EQ(level_->isa, std::get<0>(GetParam()));
  EXPECT_EQ(level_->matmul, std::get<1>(GetParam()));
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    if (dtype == DType::kBf16 && !level_->bf16) continue;
    const auto matmul = CreateMatmul(*level_, {.dtype = dtype, .k = 64, .n = 96, .max_rows = 32});
    ASSERT_TRUE(matmul.ok()) << matmul.status();
    const bool tiles = (*matmul)->implementation() == "tiles:" + std::string(level_->kernels.isa);
    const bool onednn = level_->matmul == MatmulChoice::kOneDnn && OneDnnComputes(*level_, dtype);
    EXPECT_EQ(tiles, !onednn) << (*matmul)->implementation();
  }
}

// x [kMaxRows, k], a weight [n, k] and what they give, in small whole numbers: exact in any format
// and order.
struct Problem {
  Problem(DType number_format, int64_t inputs, int64_t outputs)
      : dtype(number_format), k(inputs), n(outputs) {
    std::mt19937 random(static_cast<uint32_t>(k * 1000 + n));
    std::uniform_int_distribution draw(-3, 3);
    for (int64_t i = 0; i < n * k; ++i) weight.push_back(static_cast<float>(draw(random)));
    for (int64_t i = 0; i < kMaxRows * k; ++i) x.push_back(static_cast<float>(draw(random)));
  }
  float Expected(int64_t row, int64_t column) const {
    float sum = 0;
    for (int64_t i = 0; i < k; ++i)
      sum += x[static_cast<size_t>(row * k + i)] * weight[static_cast<size_t>(column * k + i)];
    return sum;
  }
  // x in the number format.
  std::vector<std::byte> Operand() const {
    std::vector<std::byte> bytes;
    for (const float value : x) {
      if (dtype == DType::kF32) Append(value, bytes);
      if (dtype == DType::kBf16) Append(ToBf16(value), bytes);
    }
    return bytes;
  }
  template <typename T>
  static void Append(T value, std::vector<std::byte>& bytes) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  }

  DType dtype;
  int64_t k, n;
  std::vector<float> weight, x;
};

std::vector<float> Multiply(const Matmul& matmul, const Problem& problem) {
  std::vector<std::byte> packed(static_cast<size_t>(matmul.packed_bytes()));
  matmul.Pack(TensorView<const float, 2>(problem.weight.data(), {problem.n, problem.k}),
              packed.data());
  std::vector<char> scratchpad(matmul.scratchpad_bytes() + 64);
  std::vector<float> y(static_cast<size_t>(kMaxRows * problem.n));
  const auto operand = problem.Operand();
  const auto executor = matmul.NewExecutor(scratchpad.data());
  EXPECT_TRUE(executor->Run(kMaxRows, operand.data(), packed.data(), {}, y.data()));
  return y;
}

TEST_P(MatmulChoiceTest, NoRowsAreNoWork) {
  for (const DType dtype : float_dtypes()) {
    const auto matmul =
        CreateMatmul(*level_, {.dtype = dtype, .k = 64, .n = 96, .max_rows = kMaxRows});
    ASSERT_TRUE(matmul.ok()) << matmul.status();
    std::vector<char> scratchpad((*matmul)->scratchpad_bytes() + 64);
    const std::vector<std::byte> packed(static_cast<size_t>((*matmul)->packed_bytes()));
    EXPECT_TRUE(
        (*matmul)->NewExecutor(scratchpad.data())->Run(0, nullptr, packed.data(), {}, nullptr));
  }
}

// oneDNN up to 3.8 lets a row read on into the next on AMX where k does not fill a tile, and
// multiplies what it finds by 0.
TEST_P(MatmulChoiceTest, WhatLiesBehindARowDoesNotLeakIntoIt) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : float_dtypes()) {
    for (const int64_t k : {1, 3, 31, 33, 34, 62, 100, 780}) {
      for (const int64_t n : {16, 100}) {
        SCOPED_TRACE(testing::Message() << DTypeName(dtype) << ", k " << k << ", n " << n);
        Problem problem(dtype, k, n);
        for (int64_t row = 1; row < kMaxRows; row += 2) {  // every other row
          for (int64_t i = 0; i < k; ++i) problem.x[static_cast<size_t>(row * k + i)] = kNan;
        }
        const auto matmul =
            CreateMatmul(*level_, {.dtype = dtype, .k = k, .n = n, .max_rows = kMaxRows});
        ASSERT_TRUE(matmul.ok()) << matmul.status();
        const std::vector<float> y = Multiply(**matmul, problem);
        for (int64_t row = 0; row < kMaxRows; ++row) {
          for (int64_t column = 0; column < n; ++column) {
            const float value = y[static_cast<size_t>(row * n + column)];
            if (row % 2 == 1) {
              ASSERT_TRUE(std::isnan(value)) << row << ", " << column;
            } else {
              ASSERT_EQ(value, problem.Expected(row, column)) << row << ", " << column;
            }
          }
        }
      }
    }
  }
}

// 66,311 products of 255 and 127 are the most that s32 holds.
TEST_P(MatmulChoiceTest, RefusesInt8WhoseSumsCouldWrap) {
  Matmul::Options options{.dtype = DType::kInt8, .k = 66'311, .n = 16, .max_rows = 16};
  EXPECT_TRUE(CreateMatmul(*level_, options).ok());
  options.k = 66'312;
  const absl::Status status = CreateMatmul(*level_, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("66311"), std::string::npos) << status;
  options.dtype = DType::kF32;
  EXPECT_TRUE(CreateMatmul(*level_, options).ok());
}

INSTANTIATE_TEST_SUITE_P(Isa, MatmulChoiceTest,
                         testing::Combine(testing::ValuesIn(kCpuIsaLevels),
                                          testing::Values(MatmulChoice::kAuto,
                                                          MatmulChoice::kOneDnn,
                                                          MatmulChoice::kTiles)),
                         [](const auto& parameter) {
                           return std::string(CpuIsaName(std::get<0>(parameter.param))) + "_" +
                                  std::string(MatmulChoiceName(std::get<1>(parameter.param)));
                         });

TEST(ParseMatmulChoiceTest, KnowsItsWords) {
  for (const auto choice : {MatmulChoice::kAuto, MatmulChoice::kOneDnn, MatmulChoice::kTiles}) {
    EXPECT_EQ(*ParseMatmulChoice(MatmulChoiceName(choice)), choice);
  }
  EXPECT_EQ(ParseMatmulChoice("mkl").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attendant::cpu
