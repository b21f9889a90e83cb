// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/core/base/half.h"
#include "kernels/core/dtype.h"
#include "kernels/cpu/simd/vector_kernels.h"
#include "tests/support/guarded_allocator.h"

// Operands and results for tests of the row kernels.

namespace attendant::cpu {

// Ends where its memory does: a kernel that reads behind it ends the test.
using Values = GuardedVector<float>;

inline Values Random(int64_t count, uint32_t seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  Values values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// A matmul's row as the format has it, and the real numbers that it stands for.
struct TestMatmul {
  TestMatmul(DType dtype, int64_t columns, uint32_t seed, float spread) {
    reals = Random(columns, seed, spread);
    row.values = reals.data();
    if (dtype != DType::kInt8) return;
    quantization = {0.03f, 117};
    sums.reserve(reals.size());
    column_scales.reserve(reals.size());
    column_offsets.reserve(reals.size());
    std::mt19937 random(seed);
    for (float& real : reals) {
      const int32_t column_sum = static_cast<int32_t>(random() % 8000) - 4000;
      const float scale = 0.001f + 0.00001f * static_cast<float>(random() % 100);
      const int32_t offset = quantization.zero_point * column_sum;
      sums.push_back(static_cast<int32_t>(std::lrint(real / quantization.scale / scale)) + offset);
      real = static_cast<float>(sums.back() - offset) * (quantization.scale * scale);
      column_scales.push_back(scale);
      column_offsets.push_back(scale * static_cast<float>(column_sum));
    }
    row = {sums.data(), &quantization, column_scales.data(), column_offsets.data()};
  }
  TestMatmul(const TestMatmul&) = delete;

  Values reals;
  GuardedVector<int32_t> sums;
  Values column_scales, column_offsets;
  RowQuantization quantization;
  MatmulRow row;
};

// Space for an operand's row, one value more than its columns, and what the row stands for.
struct TestOperand {
  TestOperand(DType operand_dtype, int64_t columns)
      : dtype(operand_dtype), bytes(static_cast<size_t>(columns + 1) * 4, std::byte{0x5a}) {}

  OperandRow row() { return {bytes.data(), &quantization}; }

  double at(size_t i) const {
    if (dtype == DType::kF32) return Read<float>(i);
    if (dtype == DType::kBf16) return FromBf16(Read<uint16_t>(i));
    return static_cast<float>(Read<uint8_t>(i) - quantization.zero_point) * quantization.scale;
  }
  // How far rounding may put a value from `real`.
  double tolerance(double real) const {
    if (dtype == DType::kF32) return 3e-5;
    if (dtype == DType::kBf16) return std::abs(real) / 256 + 5e-5;
    return quantization.scale * 0.51 + 5e-5;
  }
  bool untouched_after(size_t columns) const {
    const size_t size = dtype == DType::kF32 ? 4 : dtype == DType::kBf16 ? 2 : 1;
    return bytes[columns * size] == std::byte{0x5a};
  }
  template <typename T>
  T Read(size_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }

  DType dtype;
  std::vector<std::byte> bytes;
  RowQuantization quantization;
};

}  // namespace attendant::cpu
