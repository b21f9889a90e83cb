// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/kernels/kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr float kUntouched = 55;
constexpr int64_t kBeyond = 6;  // rows of a launch behind those that count

std::vector<double> LayerNorm(const std::vector<double>& row, const DeviceVector<float>& gamma,
                              const DeviceVector<float>& beta) {
  const auto hidden = static_cast<double>(row.size());
  double mean = 0, variance = 0;
  for (double value : row) mean += value / hidden;
  for (double value : row) variance += (value - mean) * (value - mean) / hidden;
  std::vector<double> result;
  for (size_t i = 0; i < row.size(); ++i) {
    result.push_back((row[i] - mean) / std::sqrt(variance + kEpsilon) * gamma[i] + beta[i]);
  }
  return result;
}

// What both kernels write.
struct Written {
  DeviceValues states;
  DeviceVector<uint8_t> quantized;
  DeviceVector<float> scales;
};

Written Untouched(DType dtype, int64_t rows, int64_t hidden) {
  const auto count = static_cast<size_t>(rows * hidden);
  return {DeviceValues(dtype, count, kUntouched), DeviceVector<uint8_t>(count, 0x2a),
          DeviceVector<float>(static_cast<size_t>(rows), kUntouched)};
}

// Row `row` of what was written against the definition's.
void ExpectRow(DType dtype, const Written& written, int64_t row,
               const std::vector<double>& expected) {
  const auto hidden = expected.size();
  const auto first = static_cast<size_t>(row) * hidden;
  double largest = 0;
  for (size_t i = 0; i < hidden; ++i) {
    const double error = std::abs(expected[i]) * RoundingOf(dtype) * 1.01 + 1e-5;
    ASSERT_NEAR(written.states.Get(first + i), expected[i], error) << "row " << row << ", " << i;
    largest = std::max(largest, std::abs(expected[i]));
  }
  if (dtype != DType::kFp8) return;
  const double scale = written.scales[static_cast<size_t>(row)];
  ASSERT_NEAR(scale, largest / 448, largest * 1e-6);
  for (size_t i = 0; i < hidden; ++i) {
    // Half a step of e4m3: 1/16 of the number, or of its smallest normal one.
    const double error = std::max(std::abs(expected[i]), scale * 0x1p-6) / 16 + 1e-5;
    const double value = scale * ToFloat(E4m3{written.quantized[first + i]});
    ASSERT_NEAR(value, expected[i], error) << "row " << row << ", " << i;
  }
}

void ExpectUntouched(const Written& written, int64_t tokens, int64_t hidden) {
  for (auto i = static_cast<size_t>(tokens * hidden); i < written.states.size(); ++i) {
    ASSERT_EQ(written.states.Get(i), kUntouched);
    ASSERT_EQ(written.quantized[i], 0x2a);
  }
  for (auto i = static_cast<size_t>(tokens); i < written.scales.size(); ++i) {
    ASSERT_EQ(written.scales[i], kUntouched);
  }
}

class NormKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  // before, update [tokens, hidden]; `before` becomes the states.
  Written RunResidual(const DeviceValues& before, DeviceValues& update, int64_t tokens,
                      int64_t hidden) {
    Written written = Untouched(GetParam(), tokens + kBeyond, hidden);
    for (size_t i = 0; i < before.size(); ++i) written.states.Set(i, before.Get(i));
    ResidualNormArgs args = {};
    args.update = update.data();
    args.norm = {gamma_.data(), beta_.data()};
    args.epsilon = kEpsilon;
    args.states = written.states.data();
    if (GetParam() == DType::kFp8) {
      args.quantized = written.quantized.data();
      args.scales = written.scales.data();
    }
    const DeviceVector<BatchCounts> counts = {{.tokens = static_cast<int32_t>(tokens)}};
    EXPECT_EQ(
        LaunchResidualNorm(GetParam(), args, counts.data(), tokens + kBeyond, hidden, stream_),
        cudaSuccess);
    stream_.Wait();
    return written;
  }

  void ExpectEmbed(int64_t hidden, bool bare);

  void DrawGammaAndBeta(int64_t hidden) {
    gamma_ = RandomValues(static_cast<size_t>(hidden), 5);
    beta_ = RandomValues(static_cast<size_t>(hidden), 6);
  }

  Stream stream_;
  DeviceVector<float> gamma_, beta_;
};

INSTANTIATE_TEST_SUITE_P(Formats, NormKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

const std::vector<int64_t> kHiddens = {8, 16, 256, 384, 768, 1000, 1024, 1032, 2048, 4096, 8192};

TEST_P(NormKernelTest, ResidualIsTheDefinitions) {
  for (int64_t hidden : kHiddens) {
    for (int64_t tokens : {0, 1, 3, 4, 5}) {
      SCOPED_TRACE(std::to_string(tokens) + " x " + std::to_string(hidden));
      DrawGammaAndBeta(hidden);
      const auto count = static_cast<size_t>(tokens * hidden);
      DeviceValues before(GetParam(), RandomValues(count, 1, 3));
      DeviceValues update(GetParam(), RandomValues(count, 2));
      const Written written = RunResidual(before, update, tokens, hidden);
      for (int64_t row = 0; row < tokens; ++row) {
        std::vector<double> sums;
        for (auto i = static_cast<size_t>(row * hidden);
             i < static_cast<size_t>((row + 1) * hidden); ++i) {
          sums.push_back(static_cast<double>(before.Get(i)) + update.Get(i));
        }
        ExpectRow(GetParam(), written, row, LayerNorm(sums, gamma_, beta_));
      }
      ExpectUntouched(written, tokens, hidden);
    }
  }
}

void NormKernelTest::ExpectEmbed(int64_t hidden, bool bare) {
  const int64_t tokens = 7, vocab = 11, max_positions = 7, segment_types = 2;
  DrawGammaAndBeta(hidden);
  const auto table = [&](int64_t rows, uint32_t seed) {
    return DeviceValues(GetParam(), RandomValues(static_cast<size_t>(rows * hidden), seed));
  };
  DeviceValues token_table = table(vocab, 11), position_table = table(max_positions, 12),
               segment_table = table(segment_types, 13);
  // What lies behind the tokens that count is not read.
  const DeviceVector<int32_t> token_ids = {10, 0, 3, 3, 9, 1, 10};
  const DeviceVector<int32_t> positions = {0, 1, 2, 0, 6, 5, 4};
  const DeviceVector<int32_t> segment_ids = {0, 0, 1, 0, 1, 1, 1};
  Written written = Untouched(GetParam(), tokens + kBeyond, hidden);
  DeviceVector<float> residual(static_cast<size_t>((tokens + kBeyond) * hidden), kUntouched);
  EmbedArgs args = {};
  args.token_ids = token_ids.data();
  args.positions = positions.data();
  args.segment_ids = segment_ids.data();
  args.token_embedding = token_table.data();
  if (!bare) args.position_embedding = position_table.data();
  args.segment_embedding = segment_table.data();
  if (!bare) args.norm = {gamma_.data(), beta_.data()};
  args.epsilon = kEpsilon;
  args.states = written.states.data();
  const DeviceVector<float> token_scales = {1, 0, 0.5f, 1, 2, 1, 0};
  if (bare) args.token_scale = 3;
  if (bare) args.token_scales = token_scales.data();
  if (bare) args.residual = residual.data();
  if (GetParam() == DType::kFp8) {
    args.quantized = written.quantized.data();
    args.scales = written.scales.data();
  }
  const DeviceVector<BatchCounts> counts = {{.tokens = static_cast<int32_t>(tokens)}};
  ASSERT_EQ(LaunchEmbed(GetParam(), args, counts.data(), tokens + kBeyond, hidden, stream_),
            cudaSuccess);
  stream_.Wait();
  for (int64_t row = 0; row < tokens; ++row) {
    const auto at = static_cast<size_t>(row);
    std::vector<double> sums;
    for (int64_t j = 0; j < hidden; ++j) {
      const auto of = [&](const DeviceValues& values, int32_t id) {
        return static_cast<double>(values.Get(static_cast<size_t>(id * hidden + j)));
      };
      sums.push_back(of(token_table, token_ids[at]) * (bare ? 3 * token_scales[at] : 1) +
                     (bare ? 0 : of(position_table, positions[at])) +
                     of(segment_table, segment_ids[at]));
      if (!bare) continue;
      ASSERT_NEAR(residual[static_cast<size_t>(row * hidden + j)], sums.back(), 1e-5);
    }
    ExpectRow(GetParam(), written, row, bare ? sums : LayerNorm(sums, gamma_, beta_));
  }
  ExpectUntouched(written, tokens, hidden);
}

TEST_P(NormKernelTest, EmbedIsTheDefinitions) {
  for (int64_t hidden : kHiddens) ExpectEmbed(hidden, false);
}

// Tokens with factors, no positions, no norm, a residual.
TEST_P(NormKernelTest, BareEmbeddingsAreTheDefinitions) {
  for (int64_t hidden : kHiddens) ExpectEmbed(hidden, true);
}

// As LayerNorm, without the mean.
std::vector<double> RmsNorm(const std::vector<double>& row, const DeviceVector<float>& gamma,
                            const DeviceVector<float>& beta) {
  double squares = 0;
  for (double value : row) squares += value * value / static_cast<double>(row.size());
  std::vector<double> result;
  for (size_t i = 0; i < row.size(); ++i) {
    result.push_back(row[i] / std::sqrt(squares + kEpsilon) * gamma[i] + beta[i]);
  }
  return result;
}

TEST_P(NormKernelTest, BranchIsTheDefinitions) {
  for (int64_t hidden : {8, 768, 1000, 2048}) {
    for (const bool rms : {false, true}) {
      for (const int norms : {0, 1, 2, 3}) {  // 1: of the branch, 2: of the next
        SCOPED_TRACE(std::to_string(hidden) + (rms ? " rms " : " ") + std::to_string(norms));
        DrawGammaAndBeta(hidden);
        const auto norm_of = rms ? &RmsNorm : &LayerNorm;
        const int64_t tokens = 5;
        const auto count = static_cast<size_t>(tokens * hidden);
        DeviceValues update(GetParam(), RandomValues(count, 2));
        DeviceVector<float> residual = RandomValues(count, 1, 3);
        const DeviceVector<float> before = residual;
        Written written = Untouched(GetParam(), tokens + kBeyond, hidden);
        const NormWeights norm = {gamma_.data(), beta_.data()}, none = {};
        const bool fp8 = GetParam() == DType::kFp8;
        const BranchNormArgs args = {.update = update.data(),
                                     .norm = (norms & 1) != 0 ? norm : none,
                                     .residual = residual.data(),
                                     .next = (norms & 2) != 0 ? norm : none,
                                     .epsilon = kEpsilon,
                                     .rms = rms,
                                     .states = written.states.data(),
                                     .quantized = fp8 ? written.quantized.data() : nullptr,
                                     .scales = fp8 ? written.scales.data() : nullptr};
        const DeviceVector<BatchCounts> counts = {{.tokens = tokens}};
        ASSERT_EQ(
            LaunchBranchNorm(GetParam(), args, counts.data(), tokens + kBeyond, hidden, stream_),
            cudaSuccess);
        stream_.Wait();
        for (int64_t row = 0; row < tokens; ++row) {
          std::vector<double> sums;
          for (auto i = static_cast<size_t>(row * hidden);
               i < static_cast<size_t>((row + 1) * hidden); ++i) {
            sums.push_back(update.Get(i));
          }
          if ((norms & 1) != 0) sums = norm_of(sums, gamma_, beta_);
          for (size_t j = 0; j < sums.size(); ++j) {
            const size_t i = static_cast<size_t>(row * hidden) + j;
            sums[j] += before[i];
            ASSERT_NEAR(residual[i], sums[j], 1e-5);
          }
          if ((norms & 2) != 0) sums = norm_of(sums, gamma_, beta_);
          ExpectRow(GetParam(), written, row, sums);
        }
        ExpectUntouched(written, tokens, hidden);
      }
    }
  }
}

TEST_P(NormKernelTest, SecondNormIsTheDefinitions) {
  for (int64_t hidden : {8, 768, 1000, 2048}) {
    for (const bool rms : {false, true}) {
      SCOPED_TRACE(std::to_string(hidden) + (rms ? " rms" : ""));
      const int64_t tokens = 5;
      const auto width = static_cast<size_t>(hidden), count = 5 * width;
      DrawGammaAndBeta(hidden);
      const DeviceVector<float> branch_gamma = RandomValues(width, 7),
                                branch_beta = RandomValues(width, 8);
      const DeviceValues before(GetParam(), RandomValues(count, 1, 3));
      DeviceValues update(GetParam(), RandomValues(count, 2));
      const DeviceVector<BatchCounts> counts = {{.tokens = tokens}};
      const bool fp8 = GetParam() == DType::kFp8;
      const auto run = [&] {
        Written written = Untouched(GetParam(), tokens + kBeyond, hidden);
        for (size_t i = 0; i < count; ++i) written.states.Set(i, before.Get(i));
        const ResidualNormArgs args = {.update = update.data(),
                                       .norm = {gamma_.data(), beta_.data()},
                                       .epsilon = kEpsilon,
                                       .states = written.states.data(),
                                       .quantized = fp8 ? written.quantized.data() : nullptr,
                                       .scales = fp8 ? written.scales.data() : nullptr,
                                       .rms = rms};
        EXPECT_EQ(LaunchSecondNorm(GetParam(), args, {branch_gamma.data(), branch_beta.data()},
                                   counts.data(), tokens + kBeyond, hidden, stream_),
                  cudaSuccess);
        stream_.Wait();
        return written;
      };
      const Written written = run();
      const auto norm_of = rms ? &RmsNorm : &LayerNorm;
      for (size_t row = 0; row < 5; ++row) {
        std::vector<double> sums;
        for (size_t i = row * width; i < (row + 1) * width; ++i) {
          sums.push_back(static_cast<double>(before.Get(i)) + update.Get(i));
        }
        sums = norm_of(sums, branch_gamma, branch_beta);
        for (size_t j = 0; j < width; ++j) sums[j] += before.Get(row * width + j);
        ExpectRow(GetParam(), written, static_cast<int64_t>(row), norm_of(sums, gamma_, beta_));
      }
      ExpectUntouched(written, tokens, hidden);
      InOtherOrders([&] { EXPECT_EQ(run().states.bytes(), written.states.bytes()); });
    }
  }
}

TEST_P(NormKernelTest, ARowsBitsDependOnItAlone) {
  for (int64_t hidden : {8, 384, 1000, 2048}) {
    DrawGammaAndBeta(hidden);
    const auto width = static_cast<size_t>(hidden);
    DeviceValues row(GetParam(), RandomValues(width, 21, 3));
    DeviceValues more(GetParam(), RandomValues(width, 22));
    const Written alone = RunResidual(row, more, 1, hidden);
    for (int64_t tokens : {2, 5, 9}) {
      DeviceValues states(GetParam(), width * static_cast<size_t>(tokens), NAN);
      DeviceValues update(GetParam(), width * static_cast<size_t>(tokens), NAN);
      const size_t last = width * static_cast<size_t>(tokens - 1);
      for (size_t j = 0; j < width; ++j) {
        states.Set(last + j, row.Get(j));
        update.Set(last + j, more.Get(j));
      }
      const auto expect = [&] {
        const Written batched = RunResidual(states, update, tokens, hidden);
        for (size_t j = 0; j < width; ++j) {
          ASSERT_EQ(batched.states.Get(last + j), alone.states.Get(j));
          ASSERT_EQ(batched.quantized[last + j], alone.quantized[j]);
        }
      };
      expect();
      InOtherOrders(expect);
    }
  }
}

TEST_P(NormKernelTest, ConstantRowsAreBeta) {
  DrawGammaAndBeta(64);
  DeviceValues before(GetParam(), 64, 3), update(GetParam(), 64, -3);
  const Written written = RunResidual(before, update, 1, 64);
  ExpectRow(GetParam(), written, 0, std::vector<double>(beta_.begin(), beta_.end()));
}

class QuantizedNormKernelTest : public NormKernelTest {};
INSTANTIATE_TEST_SUITE_P(Formats, QuantizedNormKernelTest, ::testing::Values(DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

TEST_P(QuantizedNormKernelTest, RowsOfZerosHaveTheScaleOne) {
  gamma_.assign(64, 1e-32f);
  beta_.assign(64, 0);
  DeviceValues before(GetParam(), RandomValues(64, 1)), update(GetParam(), 64, 0);
  const Written written = RunResidual(before, update, 1, 64);
  EXPECT_EQ(written.scales[0], 1);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(written.quantized[i] & 0x7f, 0);
}

TEST_P(NormKernelTest, WidthsThatAreNotThereAreRefused) {
  for (int64_t hidden : {4, 12, 8200}) {
    EXPECT_EQ(LaunchResidualNorm(GetParam(), {}, nullptr, 1, hidden, stream_),
              cudaErrorInvalidValue);
    EXPECT_EQ(LaunchEmbed(GetParam(), {}, nullptr, 1, hidden, stream_), cudaErrorInvalidValue);
  }
}

}  // namespace
}  // namespace attendant::cuda
