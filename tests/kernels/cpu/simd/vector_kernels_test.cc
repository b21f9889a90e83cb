// SPDX-License-Identifier: Apache-2.0
// Each kernel of each instruction set beside a plain twin, at every count of columns and rows.
#include "kernels/cpu/simd/vector_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "kernels/core/base/half.h"
#include "kernels/core/dtype.h"
#include "tests/kernels/cpu/simd/available_kernels.h"
#include "tests/kernels/cpu/simd/row_operands.h"

namespace attendant::cpu {
namespace {

constexpr float kUntouched = 12345.0f;

// Tests run for each instruction set and number format.
class VectorKernelsTest : public testing::TestWithParam<std::tuple<const VectorKernels*, DType>> {
 protected:
  const VectorKernels& kernels() const { return *std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  const RowKernels& rows() const {
    return dtype() == DType::kF32    ? kernels().f32
           : dtype() == DType::kBf16 ? kernels().bf16
                                     : kernels().int8;
  }
};

std::vector<double> PlainLayerNorm(const std::vector<double>& x, const Values& gamma,
                                   const Values& beta, double epsilon, bool rms = false) {
  const auto count = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (double value : x) mean += rms ? 0 : value / count;
  for (double value : x) variance += (value - mean) * (value - mean) / count;
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); ++i) {
    y.push_back((x[i] - mean) / std::sqrt(variance + epsilon) * gamma[i] + beta[i]);
  }
  return y;
}

TEST_P(VectorKernelsTest, EmbedAtEveryWidth) {
  for (int64_t hidden = 1; hidden <= 150; ++hidden) {
    const auto a = Random(hidden, 1), b = Random(hidden, 2), c = Random(hidden, 3);
    const auto gamma = Random(hidden, 4), beta = Random(hidden, 5);
    std::vector<float> out(static_cast<size_t>(hidden) + 1, kUntouched);
    kernels().embed(a.data(), b.data(), c.data(), {gamma.data(), beta.data(), hidden, 1e-5f},
                    out.data());
    std::vector<double> x;
    for (size_t i = 0; i < a.size(); ++i) x.push_back(static_cast<double>(a[i]) + b[i] + c[i]);
    const auto expected = PlainLayerNorm(x, gamma, beta, 1e-5);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(out[i], expected[i], 3e-5) << "hidden " << hidden;
    EXPECT_EQ(out.back(), kUntouched);
  }
}

TEST_P(VectorKernelsTest, AddLayerNormAtEveryWidth) {
  for (int64_t hidden = 1; hidden <= 150; ++hidden) {
    SCOPED_TRACE(hidden);
    const TestMatmul matmul(dtype(), hidden, 1, 1);
    const auto bias = Random(hidden, 2), gamma = Random(hidden, 4), beta = Random(hidden, 5);
    auto states = Random(hidden + 1, 3);
    const auto before = states;
    TestOperand operand(dtype(), hidden);
    rows().add_layer_norm(states.data(), matmul.row, bias.data(),
                          {gamma.data(), beta.data(), hidden, 1e-5f}, operand.row());
    std::vector<double> x;
    for (size_t i = 0; i < bias.size(); ++i) {
      x.push_back(static_cast<double>(before[i]) + matmul.reals[i] + bias[i]);
    }
    const auto expected = PlainLayerNorm(x, gamma, beta, 1e-5);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(states[i], expected[i], 5e-5);
      if (dtype() == DType::kF32) continue;  // the states are the operand
      EXPECT_NEAR(operand.at(i), states[i], operand.tolerance(states[i]));
    }
    EXPECT_EQ(states.back(), before.back());
    EXPECT_TRUE(operand.untouched_after(x.size()));
  }
}

// The norm of a branch's input: beside the states, which stay or only grow by the branch before.
TEST_P(VectorKernelsTest, LayerNormBesideTheStates) {
  for (int64_t hidden : {1, 7, 16, 33, 64, 150}) {
    SCOPED_TRACE(hidden);
    const TestMatmul matmul(dtype(), hidden, 1, 1);
    const auto bias = Random(hidden, 2), gamma = Random(hidden, 4), beta = Random(hidden, 5);
    const auto before = Random(hidden, 3);
    for (const bool add : {false, true}) {
      auto states = before, y = before;
      TestOperand operand(dtype(), hidden);
      const LayerNormArgs norm{gamma.data(), beta.data(), hidden, 1e-5f, y.data()};
      std::vector<double> x;
      for (size_t i = 0; i < bias.size(); ++i) {
        x.push_back(static_cast<double>(before[i]) + (add ? matmul.reals[i] + bias[i] : 0));
      }
      if (add) {
        rows().add_layer_norm(states.data(), matmul.row, bias.data(), norm, operand.row());
      } else {
        rows().layer_norm(states.data(), norm, operand.row());
        EXPECT_EQ(states, before);
      }
      const auto expected = PlainLayerNorm(x, gamma, beta, 1e-5);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(states[i], x[i], 1e-5);
        EXPECT_NEAR(y[i], expected[i], 5e-5);
        if (dtype() == DType::kF32) continue;  // y is the operand
        EXPECT_NEAR(operand.at(i), y[i], operand.tolerance(y[i]));
      }
      auto summed = before;
      rows().add_layer_norm(summed.data(), matmul.row, bias.data(), {.hidden = hidden}, {});
      if (add) {
        EXPECT_EQ(summed, states);
      }
    }
  }
}

TEST_P(VectorKernelsTest, AddLayerNormMultipliesTheOperandAlone) {
  if (dtype() != DType::kInt8) GTEST_SKIP() << "only 8-bit operands are multiplied";
  for (int64_t hidden : {1, 7, 16, 33, 150}) {
    const TestMatmul matmul(dtype(), hidden, 1, 1);
    const auto bias = Random(hidden, 2), gamma = Random(hidden, 4), beta = Random(hidden, 5);
    auto smoothing = Random(hidden, 6);
    for (float& factor : smoothing) factor = 0.1f + std::abs(factor);
    const LayerNormArgs norm{gamma.data(), beta.data(), hidden, 1e-5f};
    auto plain = Random(hidden, 3), states = plain;
    TestOperand operand(dtype(), hidden);
    OperandRow row = operand.row();
    rows().add_layer_norm(plain.data(), matmul.row, bias.data(), norm, {});
    row.smoothing = smoothing.data();
    rows().add_layer_norm(states.data(), matmul.row, bias.data(), norm, row);
    EXPECT_EQ(states, plain);  // whatever the operand is
    Values converted = states;
    TestOperand by_convert(dtype(), hidden);
    OperandRow convert_row = by_convert.row();
    convert_row.smoothing = smoothing.data();
    rows().convert(converted.data(), hidden, convert_row);
    for (size_t i = 0; i < states.size(); ++i) {
      const double expected = static_cast<double>(states[i]) * smoothing[i];
      EXPECT_NEAR(operand.at(i), expected, operand.tolerance(expected));
      EXPECT_EQ(operand.Read<uint8_t>(i), by_convert.Read<uint8_t>(i));
    }
  }
}

TEST_P(VectorKernelsTest, AddBias) {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    const TestMatmul matmul(dtype(), columns, 1, 3);
    const auto bias = Random(columns, 2);
    TestOperand qkv(rows().qkv_is_bf16 ? DType::kBf16 : DType::kF32, columns);
    rows().add_bias(matmul.row, bias.data(), columns, qkv.bytes.data());
    for (size_t i = 0; i < bias.size(); ++i) {
      const double expected = matmul.reals[i] + bias[i];
      EXPECT_NEAR(qkv.at(i), expected, qkv.tolerance(expected));
    }
    EXPECT_TRUE(qkv.untouched_after(bias.size()));
  }
}

void ExpectActivation(RowKernels::Activate kernel, DType dtype, double (*plain)(double)) {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    const TestMatmul matmul(dtype, columns, 1, 4);
    const auto bias = Random(columns, 2);
    TestOperand operand(dtype, columns);
    std::vector<float> scratch(bias.size());
    kernel(matmul.row, bias.data(), columns, scratch.data(), operand.row());
    for (size_t i = 0; i < bias.size(); ++i) {
      const double expected = plain(matmul.reals[i] + bias[i]);
      EXPECT_NEAR(operand.at(i), expected, operand.tolerance(expected))
          << matmul.reals[i] + bias[i];
    }
    EXPECT_TRUE(operand.untouched_after(bias.size()));
  }
  if (dtype == DType::kInt8) return;
  // The whole range, where the approximations switch and far outside.
  std::vector<float> x;
  for (float value = -12; value <= 12; value += 0.001f) x.push_back(value);
  for (float value : {-3e38f, -1e4f, -100.0f, 0.0f, 1e-30f, 100.0f, 1e4f}) x.push_back(value);
  const std::vector<float> bias(x.size(), 0.0f);
  const auto columns = static_cast<int64_t>(x.size());
  TestOperand operand(dtype, columns);
  kernel({x.data()}, bias.data(), columns, nullptr, operand.row());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = plain(x[i]);
    const double exact = 2e-6 * std::max(1.0, std::abs(expected));
    const double rounded = std::abs(expected) / 256 + 4.5e-5;
    EXPECT_NEAR(operand.at(i), expected, dtype == DType::kBf16 ? rounded : exact) << x[i];
  }
}

double PlainGeluErf(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }
double PlainGeluTanh(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
}
double PlainRelu(double x) { return std::max(x, 0.0); }
double PlainSilu(double x) { return x / (1 + std::exp(-x)); }

TEST_P(VectorKernelsTest, GeluErf) {
  ExpectActivation(rows().activate.gelu_erf, dtype(), PlainGeluErf);
}
TEST_P(VectorKernelsTest, GeluTanh) {
  ExpectActivation(rows().activate.gelu_tanh, dtype(), PlainGeluTanh);
}
TEST_P(VectorKernelsTest, Relu) { ExpectActivation(rows().activate.relu, dtype(), PlainRelu); }
TEST_P(VectorKernelsTest, Silu) { ExpectActivation(rows().activate.silu, dtype(), PlainSilu); }

TEST_P(VectorKernelsTest, ActivationsKeepWhatIsNotANumber) {
  if (dtype() == DType::kInt8) return;  // whose matmuls are whole numbers
  const RowKernels::Activate kernels[] = {rows().activate.gelu_erf, rows().activate.gelu_tanh,
                                          rows().activate.relu, rows().activate.silu};
  for (size_t kind = 0; kind < std::size(kernels); ++kind) {
    Values x = Random(21, 3);
    x[3] = x[17] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> bias(x.size(), 0.0f);
    TestOperand operand(dtype(), 21);
    kernels[kind]({x.data()}, bias.data(), 21, nullptr, operand.row());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(std::isnan(operand.at(i)), i == 3 || i == 17) << kind << ", " << i;
    }
  }
}

TEST_P(VectorKernelsTest, GatedActivations) {
  const std::pair<RowKernels::Activate, double (*)(double)> kinds[] = {
      {rows().activate_gated.gelu_erf, PlainGeluErf},
      {rows().activate_gated.gelu_tanh, PlainGeluTanh},
      {rows().activate_gated.relu, PlainRelu},
      {rows().activate_gated.silu, PlainSilu}};
  for (const auto& [kernel, plain] : kinds) {
    for (int64_t columns = 1; columns <= 70; ++columns) {
      const TestMatmul matmul(dtype(), 2 * columns, 1, 4);
      const auto bias = Random(2 * columns, 2);
      TestOperand operand(dtype(), columns);
      const auto count = static_cast<size_t>(columns);
      std::vector<float> scratch(count);
      kernel(matmul.row, bias.data(), columns, scratch.data(), operand.row());
      for (size_t i = 0; i < count; ++i) {
        const double up = matmul.reals[count + i] + bias[count + i];
        const double expected = plain(matmul.reals[i] + bias[i]) * up;
        EXPECT_NEAR(operand.at(i), expected, operand.tolerance(expected) + 4e-5 * std::abs(up));
      }
      EXPECT_TRUE(operand.untouched_after(count));
    }
  }
}

// As queries and keys lie in qkv.
TestOperand InQkv(const VectorKernels& kernels, bool bf16, const Values& x) {
  TestOperand operand(bf16 ? DType::kBf16 : DType::kF32, std::ssize(x));
  if (bf16) kernels.bf16.convert(x.data(), std::ssize(x), operand.row());
  if (!bf16) std::memcpy(operand.bytes.data(), x.data(), x.size() * sizeof(float));
  return operand;
}

TEST_P(VectorKernelsTest, NormalizeHeads) {
  for (int64_t dim = 1; dim <= 140; ++dim) {
    const auto x = Random(2 * dim, 5), gamma = Random(dim, 6), beta = Random(dim, 7);
    TestOperand operand = InQkv(kernels(), rows().qkv_is_bf16, x);
    const TestOperand before = operand;
    rows().normalize_heads(operand.bytes.data(), 2,
                           {gamma.data(), beta.data(), dim, 1e-6f, nullptr, dim > 70});
    for (size_t begin = 0; begin < x.size(); begin += gamma.size()) {
      std::vector<double> head;
      for (size_t i = 0; i < gamma.size(); ++i) head.push_back(before.at(begin + i));
      head = PlainLayerNorm(head, gamma, beta, 1e-6, dim > 70);
      for (size_t i = 0; i < gamma.size(); ++i) {
        EXPECT_NEAR(operand.at(begin + i), head[i], operand.tolerance(head[i])) << dim;
      }
    }
    EXPECT_TRUE(operand.untouched_after(x.size()));
  }
}

TEST_P(VectorKernelsTest, RotateTurnsThePairsOfEachHead) {
  for (int64_t pairs = 1; pairs <= 40; ++pairs) {
    constexpr int64_t kHeads = 3;
    const auto x = Random(kHeads * 2 * pairs, 5), angles = Random(pairs, 6);
    std::vector<float> cosines, sines;
    for (const float angle : angles) {
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    TestOperand operand = InQkv(kernels(), rows().qkv_is_bf16, x);
    const TestOperand before = operand;
    rows().rotate(operand.bytes.data(), kHeads, 2 * pairs, cosines.data(), sines.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t half = static_cast<size_t>(pairs), pair = i % half;
      const bool first = i / half % 2 == 0;
      const double partner = first ? -before.at(i + half) : before.at(i - half);
      const double expected = before.at(i) * cosines[pair] + partner * sines[pair];
      EXPECT_NEAR(operand.at(i), expected, operand.tolerance(expected)) << pairs << ", " << i;
    }
    EXPECT_TRUE(operand.untouched_after(x.size()));
  }
}

TEST_P(VectorKernelsTest, ConvertsExtremeRows) {
  using Row = std::vector<float>;  // the last ones are ties in bf16
  for (const Row& x : {Row{0, 0, 0}, Row{5, 5, 5}, Row{-5, -5, -5}, Row{1e-20f, -1e-20f},
                       Row{1e30f, -1e30f, 0}, Row{3}, Row{0x1.01p0f, 0x1.03p0f}}) {
    if (dtype() == DType::kF32) continue;  // the states are the operand
    TestOperand operand(dtype(), std::ssize(x));
    rows().convert(x.data(), std::ssize(x), operand.row());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(operand.at(i), x[i], operand.tolerance(x[i])) << x[i];
      EXPECT_TRUE(dtype() != DType::kBf16 || operand.at(i) == FromBf16(ToBf16(x[i]))) << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, VectorKernelsTest,
                         testing::Combine(testing::ValuesIn(AvailableKernels()),
                                          testing::Values(DType::kF32, DType::kBf16, DType::kInt8)),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)->isa) + "_" +
                                  std::string(DTypeName(std::get<1>(parameter.param)));
                         });

}  // namespace
}  // namespace attendant::cpu
