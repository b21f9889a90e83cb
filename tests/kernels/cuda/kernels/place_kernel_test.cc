// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/kernels/kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {
namespace {

constexpr int64_t kTokens = 5;
constexpr int64_t kBeyond = 2;  // rows of a launch behind those that count
constexpr int64_t kMaxPositions = 9;
constexpr float kEpsilon = 1e-5f;

struct PlaceShape {
  int64_t heads, key_heads, head_dim;
  bool norms, turns;
};

class PlaceKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  void Expect(const PlaceShape& shape);

  // One head by the definition.
  std::vector<double> Placed(const PlaceShape& shape, std::vector<double> x, bool query,
                             int32_t position) const {
    const auto width = x.size(), pairs = width / 2;
    double squares = 0;
    for (const double value : x) squares += value * value / static_cast<double>(width);
    for (size_t d = 0; shape.norms && d < width; ++d) {
      x[d] *= (query ? query_norm_ : key_norm_)[d] / std::sqrt(squares + kEpsilon);
    }
    if (!shape.turns) return x;
    std::vector<double> turned(width);
    for (size_t i = 0; i < pairs; ++i) {
      const float* angles = rotary_.data() + static_cast<size_t>(position) * width + i;
      const double cosine = angles[0], sine = angles[pairs];
      turned[i] = x[i] * cosine - x[i + pairs] * sine;
      turned[i + pairs] = x[i + pairs] * cosine + x[i] * sine;
    }
    return turned;
  }

  const Stream stream_;
  DeviceVector<float> query_norm_, key_norm_, rotary_;
};

INSTANTIATE_TEST_SUITE_P(Formats, PlaceKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

void PlaceKernelTest::Expect(const PlaceShape& shape) {
  SCOPED_TRACE(std::to_string(shape.heads) + " + " + std::to_string(shape.key_heads) + " x " +
               std::to_string(shape.head_dim));
  const int64_t placed = (shape.heads + shape.key_heads) * shape.head_dim;
  const int64_t stride = placed + shape.key_heads * shape.head_dim;  // values lie behind
  const auto head_dim = static_cast<size_t>(shape.head_dim);
  query_norm_ = RandomValues(head_dim, 1);
  key_norm_ = RandomValues(head_dim, 2);
  rotary_ = RandomValues(static_cast<size_t>(kMaxPositions * shape.head_dim), 3, 0.7f);
  const DeviceVector<int32_t> positions = {8, 0, 3, 3, 1, 1 << 30, 1 << 30};
  const DeviceVector<float> drawn =
      RandomValues(static_cast<size_t>((kTokens + kBeyond) * stride), 4, 2);
  const DeviceValues before(GetParam(), drawn);
  const DeviceVector<BatchCounts> counts = {{.tokens = kTokens}};
  const auto run = [&] {
    DeviceValues qkv = before;
    const PlaceHeadsArgs args = {.qkv = qkv.data(),
                                 .stride = stride,
                                 .heads = static_cast<int32_t>(shape.heads),
                                 .key_heads = static_cast<int32_t>(shape.key_heads),
                                 .head_dim = static_cast<int32_t>(shape.head_dim),
                                 .query_norm = shape.norms ? query_norm_.data() : nullptr,
                                 .key_norm = shape.norms ? key_norm_.data() : nullptr,
                                 .epsilon = kEpsilon,
                                 .rotary = shape.turns ? rotary_.data() : nullptr,
                                 .positions = positions.data()};
    EXPECT_EQ(LaunchPlaceHeads(GetParam(), args, counts.data(), kTokens + kBeyond, stream_),
              cudaSuccess);
    stream_.Wait();
    return qkv;
  };
  const DeviceValues qkv = run();
  for (int64_t row = 0; row < kTokens + kBeyond; ++row) {
    for (int64_t begin = 0; begin < stride; begin += shape.head_dim) {
      std::vector<double> expected;
      const auto first = static_cast<size_t>(row * stride + begin);
      for (size_t d = 0; d < head_dim; ++d) expected.push_back(before.Get(first + d));
      const bool changed = row < kTokens && begin < placed;
      if (changed) {
        expected = Placed(shape, expected, begin < shape.heads * shape.head_dim,
                          positions[static_cast<size_t>(row)]);
      }
      for (size_t d = 0; d < head_dim; ++d) {
        const double error =
            changed ? std::abs(expected[d]) * RoundingOf(GetParam()) * 1.01 + 1e-5 : 0;
        ASSERT_NEAR(qkv.Get(first + d), expected[d], error) << row << ", " << begin << ", " << d;
      }
    }
  }
  InOtherOrders([&] { EXPECT_EQ(run().bytes(), qkv.bytes()); });
}

TEST_P(PlaceKernelTest, IsTheDefinition) {
  for (const int64_t head_dim : {8, 24, 32, 64, 72, 128, 136, 256}) {
    Expect({3, 1, head_dim, true, true});
    Expect({12, 12, head_dim, false, true});
  }
  Expect({9, 3, 64, true, false});
  if (GetParam() == DType::kF32) Expect({2, 2, 12, true, true});
}

TEST_P(PlaceKernelTest, WhatIsNotThereIsRefused) {
  const float gamma = 1;
  PlaceHeadsArgs args = {};
  args.head_dim = 260;
  EXPECT_EQ(LaunchPlaceHeads(GetParam(), args, nullptr, 1, stream_), cudaErrorInvalidValue);
  args.head_dim = 6;
  EXPECT_EQ(LaunchPlaceHeads(GetParam(), args, nullptr, 1, stream_), cudaErrorInvalidValue);
  args.head_dim = 8;
  args.query_norm = &gamma;
  EXPECT_EQ(LaunchPlaceHeads(GetParam(), args, nullptr, 1, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace attendant::cuda
