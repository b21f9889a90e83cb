// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/kernels/kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {
namespace {

constexpr int64_t kBeyond = 3;  // rows of a launch behind those that count

double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kIdentity:
      return x;
  }
  return NAN;
}

class ActivationKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  const Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Formats, ActivationKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

const std::vector<Activation> kActivations = {Activation::kGeluErf, Activation::kGeluTanh,
                                              Activation::kRelu, Activation::kSilu,
                                              Activation::kIdentity};
const std::vector<int64_t> kWidths = {8, 40, 1024, 1032, 3072};

TEST_P(ActivationKernelTest, EachFunctionInPlace) {
  for (Activation activation : kActivations) {
    for (int64_t width : kWidths) {
      const int64_t tokens = 3;
      DeviceVector<float> drawn =
          RandomValues(static_cast<size_t>((tokens + kBeyond) * width), 1, 3);
      drawn[0] = 0, drawn[1] = -0.0f, drawn[2] = 1000, drawn[3] = -1000, drawn[4] = 1e-6f;
      DeviceValues values(GetParam(), drawn);
      const DeviceValues before = values;
      const DeviceVector<BatchCounts> counts = {{.tokens = tokens}};
      ASSERT_EQ(LaunchActivate(GetParam(), {activation, values.data(), nullptr, nullptr},
                               counts.data(), tokens + kBeyond, width, stream_),
                cudaSuccess);
      stream_.Wait();
      for (size_t i = 0; i < drawn.size(); ++i) {
        const bool counts_in = i < static_cast<size_t>(tokens * width);
        const double x = before.Get(i);
        const double expected = counts_in ? Apply(activation, x) : x;
        // Where 1 + erf cancels, the error is that of the sum: x times half of f32's step. f16 has
        // denormals.
        const double error =
            std::abs(expected) * RoundingOf(GetParam()) * 1.01 + std::abs(x) * 2e-7 + 0x1p-25;
        ASSERT_NEAR(values.Get(i), expected, counts_in ? error : 0) << x;
      }
    }
  }
}

TEST_P(ActivationKernelTest, GatedIsTheDefinitions) {
  const bool fp8 = GetParam() == DType::kFp8;
  for (Activation activation : kActivations) {
    for (int64_t width : kWidths) {
      const int64_t tokens = 3;
      const auto count = static_cast<size_t>((tokens + kBeyond) * width);
      DeviceValues values(GetParam(), RandomValues(2 * count, 1, 2));
      const DeviceValues before = values;
      DeviceValues out(GetParam(), count, 55);
      DeviceVector<uint8_t> quantized(count, 0x2a);
      DeviceVector<float> scales(static_cast<size_t>(tokens + kBeyond), 55);
      const DeviceVector<BatchCounts> counts = {{.tokens = tokens}};
      ASSERT_EQ(LaunchActivate(GetParam(),
                               {activation, values.data(), fp8 ? quantized.data() : nullptr,
                                fp8 ? scales.data() : nullptr, true, out.data()},
                               counts.data(), tokens + kBeyond, width, stream_),
                cudaSuccess);
      stream_.Wait();
      EXPECT_EQ(values.bytes(), before.bytes());
      for (size_t i = 0; i < count; ++i) {
        const size_t row = i / static_cast<size_t>(width);
        if (row >= static_cast<size_t>(tokens)) {
          ASSERT_EQ(out.Get(i), 55);
          continue;
        }
        const size_t gate = i + row * static_cast<size_t>(width);
        const double up = before.Get(gate + static_cast<size_t>(width));
        const double expected = Apply(activation, before.Get(gate)) * up;
        if (fp8) {
          const double scale = scales[row];
          ASSERT_NEAR(scale * ToFloat(E4m3{quantized[i]}), expected,
                      std::max(std::abs(expected), scale * 0x1p-6) / 16 + 1e-5);
        } else {
          const double lost = std::abs(before.Get(gate) * up) * 4e-7 + 0x1p-25;
          ASSERT_NEAR(out.Get(i), expected,
                      std::abs(expected) * RoundingOf(GetParam()) * 1.01 + lost);
        }
      }
    }
  }
}

TEST_P(ActivationKernelTest, ReluKeepsNaN) {
  DeviceValues values(GetParam(), 8, NAN);
  const DeviceVector<BatchCounts> counts = {{.tokens = 1}};
  ASSERT_EQ(LaunchActivate(GetParam(), {Activation::kRelu, values.data(), nullptr, nullptr},
                           counts.data(), 1, 8, stream_),
            cudaSuccess);
  stream_.Wait();
  EXPECT_TRUE(std::isnan(values.Get(3)));
}

TEST_P(ActivationKernelTest, QuantizedRowsWithTheirScale) {
  for (Activation activation : kActivations) {
    for (int64_t width : kWidths) {
      const int64_t tokens = 4;
      const auto count = static_cast<size_t>((tokens + kBeyond) * width);
      DeviceVector<float> drawn = RandomValues(count, 2, 3);
      std::fill_n(drawn.begin() + width, width, 0.0f);  // row 1
      DeviceValues values(GetParam(), drawn);
      const DeviceValues before = values;
      DeviceVector<uint8_t> quantized(count, 0x2a);
      DeviceVector<float> scales(static_cast<size_t>(tokens + kBeyond), 55);
      const DeviceVector<BatchCounts> counts = {{.tokens = tokens}};
      ASSERT_EQ(
          LaunchActivate(GetParam(), {activation, values.data(), quantized.data(), scales.data()},
                         counts.data(), tokens + kBeyond, width, stream_),
          cudaSuccess);
      stream_.Wait();
      EXPECT_EQ(values.bytes(), before.bytes());
      EXPECT_EQ(scales[1], 1);
      for (auto row = static_cast<size_t>(tokens); row < scales.size(); ++row) {
        EXPECT_EQ(scales[row], 55);
      }
      for (size_t i = 0; i < count; ++i) {
        const size_t row = i / static_cast<size_t>(width);
        if (row >= static_cast<size_t>(tokens)) {
          ASSERT_EQ(quantized[i], 0x2a);
          continue;
        }
        const double expected = Apply(activation, before.Get(i));
        const double scale = scales[row];
        const double error = std::max(std::abs(expected), scale * 0x1p-6) / 16 + 1e-6;
        ASSERT_NEAR(scale * ToFloat(E4m3{quantized[i]}), expected, error);
        ASSERT_LE(std::abs(expected), 448 * scale * (1 + 1e-5));
      }
    }
  }
}

TEST_P(ActivationKernelTest, ARowsBitsDependOnItAlone) {
  const int64_t width = 1032;
  DeviceValues one(GetParam(), RandomValues(static_cast<size_t>(width), 9));
  DeviceValues many(GetParam(), static_cast<size_t>(3 * width), NAN);
  for (int64_t j = 0; j < width; ++j) {
    many.Set(static_cast<size_t>(2 * width + j), one.Get(static_cast<size_t>(j)));
  }
  for (int64_t tokens : {1, 3}) {
    const DeviceVector<BatchCounts> counts = {{.tokens = static_cast<int32_t>(tokens)}};
    void* values = (tokens == 1 ? one : many).data();
    ASSERT_EQ(LaunchActivate(GetParam(), {Activation::kGeluErf, values, nullptr, nullptr},
                             counts.data(), tokens, width, stream_),
              cudaSuccess);
    stream_.Wait();
  }
  for (int64_t j = 0; j < width; ++j) {
    ASSERT_EQ(many.Get(static_cast<size_t>(2 * width + j)), one.Get(static_cast<size_t>(j)));
  }
}

TEST_P(ActivationKernelTest, ToFloatIsExact) {
  for (int64_t rows : {0, 1, 5, 40}) {
    const int64_t width = 72;
    DeviceValues values(GetParam(), RandomValues(static_cast<size_t>(rows * width), 4));
    DeviceVector<float> out(static_cast<size_t>(rows * width), 55);
    ASSERT_EQ(LaunchToFloat(GetParam(), values.data(), out.data(), rows, width, stream_),
              cudaSuccess);
    stream_.Wait();
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], values.Get(i));
  }
}

TEST_P(ActivationKernelTest, WidthsThatAreNotThereAreRefused) {
  EXPECT_EQ(LaunchActivate(GetParam(), {}, nullptr, 1, 12, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(LaunchToFloat(GetParam(), nullptr, nullptr, 1, 4, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace attendant::cuda
