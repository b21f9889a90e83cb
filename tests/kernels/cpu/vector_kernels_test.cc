// SPDX-License-Identifier: Apache-2.0
// Each kernel of each instruction set beside a plain twin, at every count of columns and rows.
#include "kernels/cpu/vector_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

namespace attendant::cpu {
namespace {

constexpr float kUntouched = 12345.0f;

std::vector<const VectorKernels*> Available() {
  std::vector<const VectorKernels*> kernels;
  if (MakeCpuBackend({.isa = CpuIsa::kAvx2}).ok()) kernels.push_back(&kAvx2Kernels);
  if (MakeCpuBackend({.isa = CpuIsa::kAvx512}).ok()) kernels.push_back(&kAvx512Kernels);
  return kernels;
}

std::vector<float> Random(int64_t count, uint32_t seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

class VectorKernelsTest : public testing::TestWithParam<const VectorKernels*> {
 protected:
  const VectorKernels& kernels() const { return *GetParam(); }
};

TEST_P(VectorKernelsTest, AddLayerNormAtEveryWidth) {
  for (int64_t hidden = 1; hidden <= 150; ++hidden) {
    const auto a = Random(hidden, 1), b = Random(hidden, 2), c = Random(hidden, 3);
    const auto gamma = Random(hidden, 4), beta = Random(hidden, 5);
    std::vector<float> out(static_cast<size_t>(hidden) + 1, kUntouched);
    kernels().add_layer_norm(a.data(), b.data(), c.data(),
                             {gamma.data(), beta.data(), hidden, 1e-5f}, out.data());
    double mean = 0, variance = 0;
    std::vector<double> x;
    for (size_t i = 0; i < a.size(); ++i) x.push_back(static_cast<double>(a[i]) + b[i] + c[i]);
    for (double value : x) mean += value / static_cast<double>(hidden);
    for (double value : x)
      variance += (value - mean) * (value - mean) / static_cast<double>(hidden);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(out[i], (x[i] - mean) / std::sqrt(variance + 1e-5) * gamma[i] + beta[i], 3e-5)
          << "hidden " << hidden;
    }
    EXPECT_EQ(out.back(), kUntouched);
  }
}

void ExpectActivation(void (*kernel)(float*, const float*, int64_t), double (*plain)(double)) {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    const auto bias = Random(columns, 2);
    auto x = Random(columns + 1, 1, 4);
    const auto before = x;
    kernel(x.data(), bias.data(), columns);
    for (size_t i = 0; i < bias.size(); ++i) {
      EXPECT_NEAR(x[i], plain(before[i] + bias[i]), 2e-6) << before[i] + bias[i];
    }
    EXPECT_EQ(x.back(), before.back());
  }
  // The whole range, where the approximations switch and far outside.
  std::vector<float> x;
  for (float value = -12; value <= 12; value += 0.001f) x.push_back(value);
  for (float value : {-3e38f, -1e4f, -100.0f, 0.0f, 1e-30f, 100.0f, 1e4f}) x.push_back(value);
  const std::vector<float> before = x, bias(x.size(), 0.0f);
  kernel(x.data(), bias.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], plain(before[i]), 2e-6 * std::max(1.0, std::abs(plain(before[i]))))
        << before[i];
  }
}

TEST_P(VectorKernelsTest, GeluErf) {
  ExpectActivation(kernels().bias_gelu_erf,
                   [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); });
}
TEST_P(VectorKernelsTest, GeluTanh) {
  ExpectActivation(kernels().bias_gelu_tanh, [](double x) {
    return x / (1 + std::exp(-2 * std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
  });
}
TEST_P(VectorKernelsTest, Relu) {
  ExpectActivation(kernels().bias_relu, [](double x) { return std::max(x, 0.0); });
}

// softmax(q k^T * scale) v with sums in double.
std::vector<double> PlainAttention(const AttentionArgs& args, int64_t query) {
  std::vector<double> weights, out(static_cast<size_t>(args.head_dim));
  for (int64_t key = 0; key < args.len; ++key) {
    double dot = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      dot += static_cast<double>(args.q[query * args.stride + d]) * args.k[key * args.stride + d];
    }
    weights.push_back(dot * args.scale);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (int64_t key = 0; key < args.len; ++key) {
    for (int64_t d = 0; d < args.head_dim; ++d) {
      out[static_cast<size_t>(d)] +=
          weights[static_cast<size_t>(key)] / sum * args.v[key * args.stride + d];
    }
  }
  return out;
}

// Runs one head out of a fused qkv of `heads` heads and compares it; what is beside it stays
// untouched.
void ExpectAttention(const VectorKernels& kernels, int64_t len, int64_t head_dim,
                     int64_t query_begin, int64_t query_end, float spread) {
  constexpr int64_t kHeads = 2;
  const int64_t hidden = kHeads * head_dim;
  const auto qkv = Random(len * 3 * hidden, static_cast<uint32_t>(len), spread);
  std::vector<float> out(static_cast<size_t>(len * hidden), kUntouched);
  const int64_t scratch_size = kernels.attention_scratch(len, head_dim);
  std::vector<float> scratch(static_cast<size_t>(scratch_size) + 1, kUntouched);
  const AttentionArgs args{.q = qkv.data() + head_dim,
                           .k = qkv.data() + hidden + head_dim,
                           .v = qkv.data() + 2 * hidden + head_dim,
                           .out = out.data() + head_dim,
                           .stride = 3 * hidden,
                           .out_stride = hidden,
                           .len = len,
                           .head_dim = head_dim,
                           .query_begin = query_begin,
                           .query_end = query_end,
                           .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                           .scratch = scratch.data()};
  kernels.attention(args);
  EXPECT_EQ(scratch.back(), kUntouched);
  for (int64_t query = 0; query < len; ++query) {
    const bool computed = query >= query_begin && query < query_end;
    const auto expected = PlainAttention(args, query);
    for (int64_t d = 0; d < hidden; ++d) {
      const float actual = out[static_cast<size_t>(query * hidden + d)];
      if (d < head_dim || !computed) {
        ASSERT_EQ(actual, kUntouched);
      } else {
        ASSERT_NEAR(actual, expected[static_cast<size_t>(d - head_dim)], 1e-5 * spread)
            << "len " << len << " head_dim " << head_dim << " query " << query;
      }
    }
  }
}

TEST_P(VectorKernelsTest, AttentionAtEveryLength) {
  for (int64_t len = 1; len <= 70; ++len) ExpectAttention(kernels(), len, 32, 0, len, 1);
}
TEST_P(VectorKernelsTest, AttentionAtEveryHeadDim) {
  for (int64_t head_dim = 1; head_dim <= 132; ++head_dim)
    ExpectAttention(kernels(), 19, head_dim, 0, 19, 1);
}
TEST_P(VectorKernelsTest, AttentionOfAPieceOfALongSequence) {
  ExpectAttention(kernels(), 700, 64, 240, 480, 1);
  ExpectAttention(kernels(), 700, 64, 699, 700, 1);
}
TEST_P(VectorKernelsTest, AttentionWithHugeLogits) {
  // Scores up to about 1e4: all weight on one key, and no overflow on the way.
  ExpectAttention(kernels(), 33, 64, 0, 33, 40);
}

INSTANTIATE_TEST_SUITE_P(Isa, VectorKernelsTest, testing::ValuesIn(Available()),
                         [](const auto& parameter) { return std::string(parameter.param->isa); });

}  // namespace
}  // namespace attendant::cpu
