// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/kernels/kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {
namespace {

constexpr int64_t kTokens = 5;
constexpr int64_t kBeyond = 2;  // rows of a launch behind those that count
constexpr float kEpsilon = 1e-5f;

struct Norm {
  DeviceVector<float> gamma, beta;
  NormWeights weights() const { return {gamma.data(), beta.data()}; }
};

std::vector<double> Normalized(const std::vector<double>& x, const Norm& norm, bool rms) {
  const auto width = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += rms ? 0 : value / width;
  for (const double value : x) variance += (value - mean) * (value - mean) / width;
  std::vector<double> result;
  for (size_t i = 0; i < x.size(); ++i) {
    result.push_back((x[i] - mean) / std::sqrt(variance + kEpsilon) * norm.gamma[i] + norm.beta[i]);
  }
  return result;
}

class WholeNormKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  Norm Draw(int64_t width, uint32_t seed) {
    const auto count = static_cast<size_t>(width);
    return {RandomValues(count, seed), RandomValues(count, seed + 1)};
  }
  void Expect(int64_t query_width, int64_t key_width, bool rms);

  const Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Formats, WholeNormKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

void WholeNormKernelTest::Expect(int64_t query_width, int64_t key_width, bool rms) {
  SCOPED_TRACE(std::to_string(query_width) + ", " + std::to_string(key_width) +
               (rms ? " rms" : ""));
  const int64_t stride = query_width + 2 * key_width;  // values lie behind
  const Norm query_norm = Draw(query_width, 1), key_norm = Draw(key_width, 3);
  const DeviceValues before(GetParam(),
                            RandomValues(static_cast<size_t>((kTokens + kBeyond) * stride), 5, 2));
  const DeviceVector<BatchCounts> counts = {{.tokens = kTokens}};
  const auto run = [&] {
    DeviceValues qkv = before;
    const WholeNormArgs args = {.qkv = qkv.data(),
                                .stride = stride,
                                .query_width = query_width,
                                .key_width = key_width,
                                .query_norm = query_norm.weights(),
                                .key_norm = key_norm.weights(),
                                .epsilon = kEpsilon,
                                .rms = rms};
    EXPECT_EQ(LaunchWholeNorm(GetParam(), args, counts.data(), kTokens + kBeyond, stream_),
              cudaSuccess);
    stream_.Wait();
    return qkv;
  };
  const DeviceValues qkv = run();
  for (int64_t row = 0; row < kTokens + kBeyond; ++row) {
    int64_t begin = row * stride;
    for (const int64_t width : {query_width, key_width, key_width}) {
      std::vector<double> expected;
      for (int64_t i = begin; i < begin + width; ++i) {
        expected.push_back(before.Get(static_cast<size_t>(i)));
      }
      const bool query = begin == row * stride, value = begin == (row + 1) * stride - key_width;
      const bool changed = row < kTokens && !value;
      if (changed) expected = Normalized(expected, query ? query_norm : key_norm, rms);
      for (const double value_expected : expected) {
        const double error =
            changed ? std::abs(value_expected) * RoundingOf(GetParam()) * 1.01 + 1e-5 : 0;
        ASSERT_NEAR(qkv.Get(static_cast<size_t>(begin)), value_expected, error) << row;
        ++begin;
      }
    }
  }
  InOtherOrders([&] { EXPECT_EQ(run().bytes(), qkv.bytes()); });
}

TEST_P(WholeNormKernelTest, IsTheDefinition) {
  for (const bool rms : {false, true}) {
    Expect(8, 8, rms);
    Expect(768, 768, rms);
    Expect(1000, 200, rms);
    Expect(2048, 512, rms);
  }
  Expect(8192, 8192, false);
}

TEST_P(WholeNormKernelTest, ATokensBitsDependOnItAlone) {
  const int64_t width = 768, stride = 3 * width;
  const Norm norm = Draw(width, 1);
  const DeviceValues row(GetParam(), RandomValues(static_cast<size_t>(stride), 5, 2));
  const auto run = [&](int64_t tokens) {  // the last of `tokens`, the others being NaN
    DeviceValues qkv(GetParam(), static_cast<size_t>(tokens * stride), NAN);
    const auto last = static_cast<size_t>((tokens - 1) * stride);
    for (size_t i = 0; i < row.size(); ++i) qkv.Set(last + i, row.Get(i));
    const DeviceVector<BatchCounts> counts = {{.tokens = static_cast<int32_t>(tokens)}};
    const WholeNormArgs args = {.qkv = qkv.data(),
                                .stride = stride,
                                .query_width = width,
                                .key_width = width,
                                .query_norm = norm.weights(),
                                .key_norm = norm.weights(),
                                .epsilon = kEpsilon,
                                .rms = false};
    EXPECT_EQ(LaunchWholeNorm(GetParam(), args, counts.data(), tokens, stream_), cudaSuccess);
    stream_.Wait();
    std::vector<float> values;
    for (size_t i = last; i < qkv.size(); ++i) values.push_back(qkv.Get(i));
    return values;
  };
  const std::vector<float> alone = run(1);
  for (const int64_t tokens : {2, 5}) EXPECT_EQ(run(tokens), alone);
}

TEST_P(WholeNormKernelTest, WhatIsNotThereIsRefused) {
  for (const auto& [query_width, key_width] :
       {std::pair<int64_t, int64_t>{12, 8}, {16, 12}, {16, 24}, {8200, 8}}) {
    WholeNormArgs args = {};
    args.query_width = query_width;
    args.key_width = key_width;
    EXPECT_EQ(LaunchWholeNorm(GetParam(), args, nullptr, 1, stream_), cudaErrorInvalidValue);
  }
}

}  // namespace
}  // namespace attendant::cuda
