// SPDX-License-Identifier: Apache-2.0
// Each kernel of each instruction set beside plain loops, at every count around a vector's length.
#include "kernels/attention/scored/scored_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/values.h"
#include "tests/kernels/attention/call_support.h"
#include "tests/support/counter_values.h"

namespace attendant::attention {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int64_t kCounts[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 48, 64, 65, 130};

std::vector<const ScoredKernels*> Available() {
  std::vector<const ScoredKernels*> kernels;
  const cpu::IsaLevel* best = BestIsa();
  EXPECT_NE(best, nullptr);
  if (best == nullptr) return kernels;
  kernels.push_back(&ScoredKernelsOf({.isa = best}));
  if (kernels.front() != &kAvx2ScoredKernels) kernels.push_back(&kAvx2ScoredKernels);
  return kernels;
}

class ScoredKernelsTest : public testing::TestWithParam<const ScoredKernels*> {
 protected:
  const ScoredKernels& kernels() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Isa, ScoredKernelsTest, testing::ValuesIn(Available()),
                         [](const auto& parameter) { return std::string(parameter.param->isa); });

double Naive(const StridedMatmulArgs& args, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < args.k; ++i) {
    sum += static_cast<double>(args.a[row * args.a_row_stride + i * args.a_column_stride]) *
           static_cast<double>(args.b[i * args.b_row_stride + column]);
  }
  return sum;
}

TEST_P(ScoredKernelsTest, MatmulMatchesPlainLoopsInEveryShape) {
  for (int64_t m : {1, 2, 5, 6, 7, 12, 13}) {
    for (int64_t n : kCounts) {
      for (int64_t k : {0, 1, 17, 513}) {
        const auto a = CounterValues(1, m * k + 1), b = CounterValues(2, k * (n + 3) + 1);
        for (bool transposed : {false, true}) {
          for (bool accumulate : {false, true}) {
            std::vector<float> c(static_cast<size_t>(m * (n + 2)), 3.0f);
            const StridedMatmulArgs args{.a = a.data(),
                                         .a_row_stride = transposed ? 1 : k,
                                         .a_column_stride = transposed ? m : 1,
                                         .b = b.data(),
                                         .b_row_stride = n + 3,
                                         .c = c.data(),
                                         .c_row_stride = n + 2,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .accumulate = accumulate};
            kernels().matmul(args);
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                ASSERT_NEAR(c[static_cast<size_t>(i * (n + 2) + j)],
                            Naive(args, i, j) + (accumulate ? 3 : 0), 1e-4)
                    << m << " " << n << " " << k;
              }
              // Nothing is written beside the rows.
              ASSERT_EQ(c[static_cast<size_t>(i * (n + 2) + n)], 3.0f);
            }
          }
        }
      }
    }
  }
}

TEST_P(ScoredKernelsTest, RowsMatchPlainLoops) {
  for (int64_t n : kCounts) {
    const auto count = static_cast<size_t>(n);
    const std::vector<float> x = CounterValues(3, n, 4), y = CounterValues(4, n);
    double dot = 0, sum = 0;
    for (size_t i = 0; i < count; ++i) {
      dot += static_cast<double>(x[i]) * static_cast<double>(y[i]);
      sum += static_cast<double>(x[i]);
    }
    EXPECT_NEAR(kernels().dot(x.data(), y.data(), n), dot, 1e-4);
    EXPECT_NEAR(kernels().sum(x.data(), n), sum, 1e-4);

    std::vector<float> row = y;
    kernels().add_scaled(x.data(), 0.5f, n, row.data());
    for (size_t i = 0; i < count; ++i) EXPECT_NEAR(row[i], y[i] + 0.5f * x[i], 1e-6);

    row = x;
    kernels().elu_plus_one(row.data(), n);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(row[i], x[i] > 0 ? x[i] + 1 : std::exp(x[i]), 1e-6);
    }
    row = x;
    kernels().relu(row.data(), n);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(row[i], std::max(x[i], 0.0f));

    EXPECT_TRUE(kernels().finite(x.data(), n));
    for (float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
      row = x;
      row.back() = bad;
      EXPECT_FALSE(kernels().finite(row.data(), n));
    }
  }
}

TEST_P(ScoredKernelsTest, ConvertsRowsAsTheReferenceDoes) {
  for (int64_t n : kCounts) {
    const std::vector<float> x = CounterValues(5, n, 100);
    std::vector<uint16_t> bf16(static_cast<size_t>(n) + 1, 0x1234);
    kernels().store_row(x.data(), 0.25f, n, /*bf16=*/true, bf16.data());
    std::vector<float> back(static_cast<size_t>(n) + 1, 7.0f);
    kernels().load_row(bf16.data(), /*bf16=*/true, n, back.data());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(bf16[i], ToBf16(x[i] * 0.25f));
      EXPECT_EQ(back[i], FromBf16(bf16[i]));
    }
    EXPECT_EQ(bf16.back(), 0x1234);
    EXPECT_EQ(back.back(), 7.0f);
  }
}

TEST_P(ScoredKernelsTest, Transposes) {
  for (int64_t rows : {1, 5, 12, 16, 17, 64}) {
    for (int64_t n : kCounts) {
      const std::vector<float> x = CounterValues(6, rows * (n + 1));
      std::vector<float> out(static_cast<size_t>(n * 64), 9.0f);
      kernels().transpose(x.data(), n + 1, rows, n, out.data(), 64);
      for (int64_t d = 0; d < n; ++d) {
        for (int64_t i = 0; i < rows; ++i) {
          ASSERT_EQ(out[static_cast<size_t>(d * 64 + i)], x[static_cast<size_t>(i * (n + 1) + d)]);
        }
      }
    }
  }
}

TEST_P(ScoredKernelsTest, ExponentialsMatchPlainLoops) {
  for (int64_t n : kCounts) {
    const std::vector<float> x = CounterValues(7, n, 30);
    std::vector<float> bias = CounterValues(8, n, 3);
    if (n > 2) bias[1] = -kInf;
    std::vector<float> row = x;
    if (n > 2) row[1] = std::numeric_limits<float>::quiet_NaN();  // left out: may be anything
    const float sum = kernels().exponentials(row.data(), bias.data(), n);
    double largest = -1e30, expected = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (n <= 2 || i != 1) largest = std::max(largest, static_cast<double>(x[i] + bias[i]));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const double e =
          n > 2 && i == 1 ? 0 : std::exp(static_cast<double>(x[i] + bias[i]) - largest);
      expected += e;
      EXPECT_NEAR(row[i], e, 2e-6);
    }
    EXPECT_NEAR(sum / expected, 1, 2e-6);

    std::vector<float> none(static_cast<size_t>(n), -kInf);
    EXPECT_EQ(kernels().exponentials(none.data(), nullptr, n), 0);
    for (float value : none) EXPECT_EQ(value, 0);
    none.assign(static_cast<size_t>(n), -kInf);
    none.back() = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(kernels().exponentials(none.data(), nullptr, n)));
  }
}

// Sums of tanh over all magnitudes, on both sides of where keys become exponentials.
TEST_P(ScoredKernelsTest, TanhScoresMatchPlainLoops) {
  constexpr int64_t kUnits = 21, kStride = 64;
  for (float key_amplitude : {0.5f, 21.0f, 90.0f}) {
    for (float query_amplitude : {0.5f, 30.0f, 5000.0f}) {
      const auto queries = CounterValues(9, kUnits * 16, query_amplitude);
      const auto keys = CounterValues(10, kUnits * kStride, key_amplitude);
      const auto weight = CounterValues(11, kUnits);
      std::vector<float> exponentials = queries, panel = keys, flags(kStride);
      kernels().double_exponential(exponentials.data(), kUnits * 16);
      const bool all =
          kernels().key_exponentials(panel.data(), kStride, kUnits, kStride, flags.data());
      EXPECT_EQ(all, key_amplitude <= 21.5f);
      std::vector<float> scores(12 * kStride);
      TanhScoreArgs args{.queries = queries.data(),
                         .exponentials = exponentials.data(),
                         .keys = panel.data(),
                         .flags = flags.data(),
                         .score_weight = weight.data(),
                         .scores = scores.data(),
                         .query_stride = 16,
                         .key_stride = kStride,
                         .score_stride = kStride,
                         .units = kUnits,
                         .rows = 11,
                         .columns = 41};
      for (bool of_exponentials : {false, true}) {
        if (of_exponentials && !all) continue;
        of_exponentials ? kernels().tanh_scores_of_exponentials(args) : kernels().tanh_scores(args);
        for (int64_t i = 0; i < args.rows; ++i) {
          for (int64_t j = 0; j < args.columns; ++j) {
            double expected = 0;
            for (int64_t u = 0; u < kUnits; ++u) {
              const double x = static_cast<double>(queries[static_cast<size_t>(u * 16 + i)]) +
                               static_cast<double>(keys[static_cast<size_t>(u * kStride + j)]);
              expected += static_cast<double>(weight[static_cast<size_t>(u)]) * std::tanh(x);
            }
            ASSERT_NEAR(scores[static_cast<size_t>(i * kStride + j)], expected, 1e-5)
                << key_amplitude << " " << query_amplitude;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant::attention
