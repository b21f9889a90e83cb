// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {
namespace {

class AttentionWeightsKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  void Expect(int64_t len, int64_t head_dim, float deviation) {
    SCOPED_TRACE(std::to_string(len) + " x " + std::to_string(head_dim));
    // Columns of rows of qkv, the last of which ends with the head's key.
    const int64_t stride = 4 * head_dim;
    const auto size = static_cast<size_t>((len - 1) * stride + head_dim);
    DeviceValues q(GetParam(), RandomValues(size, 1, deviation));
    DeviceValues k(GetParam(), RandomValues(size, 2, deviation));
    const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
    const auto run = [&] {
      DeviceVector<float> out(static_cast<size_t>(len * len), 55);
      EXPECT_EQ(LaunchAttentionWeights(GetParam(),
                                       {q.data(), k.data(), stride, stride, scale, out.data()}, len,
                                       head_dim, stream_),
                cudaSuccess);
      stream_.Wait();
      return out;
    };
    const DeviceVector<float> first = run();
    InOtherOrders([&] { EXPECT_EQ(run(), first); });
    for (int64_t i = 0; i < len; ++i) {
      std::vector<double> weights;
      for (int64_t j = 0; j < len; ++j) {
        double score = 0;
        for (int64_t d = 0; d < head_dim; ++d) {
          score += static_cast<double>(q.Get(static_cast<size_t>(i * stride + d))) *
                   k.Get(static_cast<size_t>(j * stride + d));
        }
        weights.push_back(score * scale);
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - largest);
      for (int64_t j = 0; j < len; ++j) {
        ASSERT_NEAR(first[static_cast<size_t>(i * len + j)], weights[static_cast<size_t>(j)] / sum,
                    2e-5 * deviation * deviation);
      }
    }
  }
  const Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Formats, AttentionWeightsKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

TEST_P(AttentionWeightsKernelTest, AreTheDefinitions) {
  for (int64_t len : {1, 2, 7, 8, 9, 31, 32, 33, 65, 200}) Expect(len, 32, 1);
  for (int64_t head_dim : {8, 24, 64, 128}) Expect(40, head_dim, 1);
  if (GetParam() == DType::kF32) Expect(40, 256, 1);
  Expect(70, 64, 9);  // scores of some hundreds
}

TEST_P(AttentionWeightsKernelTest, TheFirstQueriesAloneHaveTheSameBits) {
  constexpr int64_t kLen = 33, kHeadDim = 32;
  DeviceValues q(GetParam(), RandomValues(kLen * kHeadDim, 1, 1));
  DeviceValues k(GetParam(), RandomValues(kLen * kHeadDim, 2, 1));
  const auto run = [&](int64_t queries) {
    DeviceVector<float> out(kLen * kLen, 55);
    EXPECT_EQ(LaunchAttentionWeights(
                  GetParam(), {q.data(), k.data(), kHeadDim, kHeadDim, 1, out.data(), queries},
                  kLen, kHeadDim, stream_),
              cudaSuccess);
    stream_.Wait();
    return out;
  };
  const DeviceVector<float> all = run(0);
  for (const int64_t queries : {1, 2, 9, 33}) {
    const DeviceVector<float> some = run(queries);
    for (int64_t i = 0; i < kLen * kLen; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(some[at], i < queries * kLen ? all[at] : 55) << queries << ", " << i;
    }
  }
}

// Windows by rows and by positions, scores by distance, keys that take no part; a row that sees
// nothing is zeros.
TEST_P(AttentionWeightsKernelTest, SeeWhatAttentionSees) {
  constexpr int64_t kLen = 40, kHeadDim = 32, kKeys = 30;
  DeviceValues q(GetParam(), RandomValues(kLen * kHeadDim, 1, 1));
  DeviceValues k(GetParam(), RandomValues(kLen * kHeadDim, 2, 1));
  DeviceVector<int32_t> positions;
  for (int32_t i = 0; i < kLen; ++i) positions.push_back(i + i / 4);
  const DeviceVector<float> by_distance = RandomValues(201, 3, 2);
  for (const bool gaps : {false, true}) {
    AttentionWeightsArgs args{q.data(), k.data(), kHeadDim, kHeadDim, 0.2f, nullptr};
    args.keys = kKeys;
    args.rule = {6, 3};
    if (gaps) args.distance.positions = positions.data();
    args.distance.scores = by_distance.data() + 100;
    DeviceVector<float> out(kLen * kLen, 55);
    args.out = out.data();
    ASSERT_EQ(LaunchAttentionWeights(GetParam(), args, kLen, kHeadDim, stream_), cudaSuccess);
    stream_.Wait();
    for (int64_t i = 0; i < kLen; ++i) {
      std::vector<double> weights;
      double sum = 0;
      for (int64_t j = 0; j < kLen; ++j) {
        const int64_t distance =
            gaps ? positions[static_cast<size_t>(j)] - positions[static_cast<size_t>(i)] : j - i;
        double score = 0;
        for (int64_t d = 0; d < kHeadDim; ++d) {
          score += static_cast<double>(q.Get(static_cast<size_t>(i * kHeadDim + d))) *
                   k.Get(static_cast<size_t>(j * kHeadDim + d));
        }
        const bool seen = j < kKeys && distance >= -6 && distance <= 3;
        weights.push_back(
            seen ? std::exp(score * 0.2 + by_distance[static_cast<size_t>(100 + distance)]) : 0);
        sum += weights.back();
      }
      for (int64_t j = 0; j < kLen; ++j) {
        ASSERT_NEAR(out[static_cast<size_t>(i * kLen + j)],
                    sum == 0 ? 0 : weights[static_cast<size_t>(j)] / sum, 2e-5);
      }
    }
  }
}

// A long sequence's weights are made some rows at a time.
TEST_P(AttentionWeightsKernelTest, RowsHaveTheSameBitsInPieces) {
  constexpr int64_t kLen = 40, kHeadDim = 32;
  DeviceValues q(GetParam(), RandomValues(kLen * kHeadDim, 1, 1));
  DeviceValues k(GetParam(), RandomValues(kLen * kHeadDim, 2, 1));
  DeviceVector<float> whole(kLen * kLen, 55), pieces(kLen * kLen, 55);
  AttentionWeightsArgs args{q.data(), k.data(), kHeadDim, kHeadDim, 0.2f, whole.data()};
  args.rule = {6, 3};
  ASSERT_EQ(LaunchAttentionWeights(GetParam(), args, kLen, kHeadDim, stream_), cudaSuccess);
  for (const auto& [begin, count] :
       {std::pair<int64_t, int64_t>{0, 13}, {13, 1}, {14, 16}, {30, 10}}) {
    args.out = pieces.data() + begin * kLen;
    args.first_query = begin;
    args.queries = count;
    ASSERT_EQ(LaunchAttentionWeights(GetParam(), args, kLen, kHeadDim, stream_), cudaSuccess);
  }
  stream_.Wait();
  for (size_t i = 0; i < kLen * kLen; ++i) ASSERT_EQ(pieces[i], whole[i]) << i;
}

TEST_P(AttentionWeightsKernelTest, WhatIsNotThereIsRefused) {
  EXPECT_EQ(LaunchAttentionWeights(GetParam(), {}, 1, 2, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(LaunchAttentionWeights(GetParam(), {}, 1, 264, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace attendant::cuda
