// SPDX-License-Identifier: Apache-2.0
// Dot products with packed vectors of each instruction set beside plain sums.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/base/half.h"
#include "kernels/core/base/int_math.h"
#include "tests/kernels/cpu/simd/available_kernels.h"

namespace attendant::cpu {
namespace {

// Numbers that bf16 has, in either format.
struct Values {
  Values(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < count; ++i) {
      bf16.push_back(ToBf16(static_cast<float>(random() % 2001) / 1000 - 1));
      f32.push_back(FromBf16(bf16.back()));
    }
  }
  const void* data(bool as_bf16, int64_t at) const {
    if (as_bf16) return bf16.data() + at;
    return f32.data() + at;
  }

  std::vector<float> f32;
  std::vector<uint16_t> bf16;
};

struct Problem {
  int64_t rows, count, width;
};

class Packed {
 public:
  Packed(const RowKernels& kernels, const Problem& problem)
      : kernels_(kernels),
        problem_(problem),
        x_(problem.rows * stride(), 1),
        vectors_(problem.count * problem.width, 2),
        packed_(static_cast<size_t>(kernels.dots.packed_bytes(problem.count, problem.width)) + 64) {
    kernels.dots.pack(vectors_.data(kernels.qkv_is_bf16, 0), problem.count, problem.width,
                      packed());
  }

  int64_t y_stride() const { return RoundUp(problem_.count, kDotGranularity); }

  // y [rows, y_stride] of `rows` rows from `row` on.
  std::vector<float> Multiply(int64_t row, int64_t rows, int64_t begin, int64_t end) {
    std::vector<float> y(static_cast<size_t>(RoundUp(rows, kDotGranularity) * y_stride()));
    std::vector<std::byte> scratch(
        static_cast<size_t>(kernels_.dots.scratch_bytes(problem_.width)));
    kernels_.dots.multiply({.x = x_.data(kernels_.qkv_is_bf16, row * stride()),
                            .x_stride = stride(),
                            .rows = rows,
                            .packed = packed(),
                            .count = problem_.count,
                            .width = problem_.width,
                            .begin = begin,
                            .end = end,
                            .y = y.data(),
                            .y_stride = y_stride(),
                            .scratch = scratch.data()});
    return y;
  }

  double Expected(int64_t row, int64_t vector) const {
    double sum = 0;
    for (int64_t i = 0; i < problem_.width; ++i) {
      sum += static_cast<double>(x_.f32[static_cast<size_t>(row * stride() + i)]) *
             static_cast<double>(vectors_.f32[static_cast<size_t>(vector * problem_.width + i)]);
    }
    return sum;
  }

 private:
  int64_t stride() const { return problem_.width + 3; }
  std::byte* packed() {
    return packed_.data() + (-reinterpret_cast<intptr_t>(packed_.data()) & 63);
  }

  const RowKernels& kernels_;
  Problem problem_;
  Values x_, vectors_;
  std::vector<std::byte> packed_;
};

void ExpectProducts(const RowKernels& kernels, const Problem& problem) {
  Packed packed(kernels, problem);
  const int64_t begin = problem.count / 3, end = problem.count - problem.count / 4;
  const auto y = packed.Multiply(0, problem.rows, begin, end);
  for (int64_t row = 0; row < problem.rows; ++row) {
    const auto alone = packed.Multiply(row, 1, 0, problem.count);
    for (int64_t vector = begin; vector < end; ++vector) {
      const float value = y[static_cast<size_t>(row * packed.y_stride() + vector)];
      ASSERT_NEAR(value, packed.Expected(row, vector), 1e-5) << row << ", " << vector;
      ASSERT_EQ(value, alone[static_cast<size_t>(vector)]) << row << ", " << vector;
    }
  }
}

TEST(PackedDotsTest, AreSumsOfProducts) {
  for (const VectorKernels* kernels : AvailableKernels()) {
    for (const RowKernels* format : {&kernels->f32, &kernels->bf16, &kernels->int8}) {
      for (const int64_t width : {1, 2, 7, 16, 33, 64}) {
        for (const int64_t rows : {1, 6, 17, 40}) {
          for (const int64_t count : {4, 64, 100}) {
            SCOPED_TRACE(std::string(kernels->isa) + " width " + std::to_string(width) + " rows " +
                         std::to_string(rows) + " count " + std::to_string(count));
            ExpectProducts(*format, {rows, count, width});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
