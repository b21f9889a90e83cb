// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/cuda_interface.h"
#include "kernels/cuda/kernels/kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {
namespace {

constexpr float kUntouched = 55;

// One sequence's pooled row by the definition; states of rows [begin, end).
std::vector<double> Pool(const DeviceValues& states, int64_t hidden, int64_t begin, int64_t end,
                         const PoolTask& task) {
  const auto at = [&](int64_t row, int64_t j) {
    return static_cast<double>(states.Get(static_cast<size_t>(row * hidden + j)));
  };
  std::vector<double> pooled;
  double squares = 0;
  for (int64_t j = 0; j < task.dims; ++j) {
    double value = task.pooling == ATTENDANT_CUDA_POOL_LAST ? at(end - 1, j) : at(begin, j);
    for (int64_t row = begin + 1; row < end; ++row) {
      if (task.pooling == ATTENDANT_CUDA_POOL_MEAN) value += at(row, j);
      if (task.pooling == ATTENDANT_CUDA_POOL_MAX) value = std::max(value, at(row, j));
    }
    if (task.pooling == ATTENDANT_CUDA_POOL_MEAN) value /= static_cast<double>(end - begin);
    pooled.push_back(value);
    squares += value * value;
  }
  if (task.normalize != 0) {
    for (double& value : pooled) value /= std::max(std::sqrt(squares), 1e-12);
  }
  return pooled;
}

class PoolKernelTest : public ::testing::TestWithParam<DType> {
 protected:
  DeviceVector<float> Run(DeviceValues& states, int64_t hidden, const DeviceVector<int32_t>& starts,
                          const DeviceVector<PoolTask>& tasks) {
    const auto sequences = static_cast<int64_t>(tasks.size());
    DeviceVector<float> pooled(static_cast<size_t>((sequences + 2) * hidden), kUntouched);
    const DeviceVector<BatchCounts> counts = {{.sequences = static_cast<int32_t>(sequences)}};
    EXPECT_EQ(LaunchPool(GetParam(), {states.data(), starts.data(), tasks.data(), pooled.data()},
                         counts.data(), sequences + 2, hidden, stream_),
              cudaSuccess);
    stream_.Wait();
    return pooled;
  }
  const Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Formats, PoolKernelTest,
                         ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8),
                         [](const auto& param) { return DTypeName(param.param); });

TEST_P(PoolKernelTest, EveryPoolingLengthAndCut) {
  for (int64_t hidden : {8, 264, 384, 768, 1000}) {
    DeviceVector<int32_t> starts = {0};
    DeviceVector<PoolTask> tasks;
    for (int32_t len : {1, 2, 7, 8, 9, 33, 100}) {
      for (int32_t pooling = ATTENDANT_CUDA_POOL_NONE; pooling <= ATTENDANT_CUDA_POOL_LAST;
           ++pooling) {
        starts.push_back(starts.back() + len);
        const int64_t dims = len % 3 == 0   ? std::min<int64_t>(hidden, 300)
                             : len % 3 == 1 ? hidden
                                            : 7;
        tasks.push_back({pooling, (len + pooling) % 2, static_cast<int32_t>(dims), 0});
      }
    }
    starts.push_back(starts.back());  // a sequence without tokens
    tasks.push_back({ATTENDANT_CUDA_POOL_MEAN, 1, static_cast<int32_t>(hidden), 0});
    DeviceValues states(GetParam(),
                        RandomValues(static_cast<size_t>(starts.back() * hidden), 1, 2));
    const DeviceVector<float> pooled = Run(states, hidden, starts, tasks);
    for (size_t s = 0; s * static_cast<size_t>(hidden) < pooled.size(); ++s) {
      std::vector<double> expected;
      if (s < tasks.size() && tasks[s].pooling != ATTENDANT_CUDA_POOL_NONE &&
          starts[s] < starts[s + 1]) {
        expected = Pool(states, hidden, starts[s], starts[s + 1], tasks[s]);
      }
      expected.resize(static_cast<size_t>(hidden), kUntouched);
      for (size_t j = 0; j < expected.size(); ++j) {
        ASSERT_NEAR(pooled[s * expected.size() + j], expected[j], 2e-6) << s << " " << j;
      }
    }
    InOtherOrders([&] { EXPECT_EQ(Run(states, hidden, starts, tasks), pooled); });
  }
}

TEST_P(PoolKernelTest, ASequencesBitsDependOnItAlone) {
  const int64_t hidden = 384;
  const auto size = static_cast<size_t>(50 * hidden);
  const PoolTask task = {ATTENDANT_CUDA_POOL_MEAN, 1, hidden, 0};
  DeviceValues one(GetParam(), RandomValues(size, 3));
  DeviceVector<float> alone = Run(one, hidden, {0, 50}, {task});
  DeviceValues many(GetParam(), size + static_cast<size_t>(3 * hidden), NAN);
  for (size_t i = 0; i < size; ++i) many.Set(i + static_cast<size_t>(3 * hidden), one.Get(i));
  const DeviceVector<float> batched = Run(many, hidden, {0, 3, 53}, {task, task});
  alone.resize(static_cast<size_t>(hidden));
  EXPECT_EQ(DeviceVector<float>(batched.begin() + hidden, batched.begin() + 2 * hidden), alone);
}

TEST_P(PoolKernelTest, ZerosStayZeros) {
  DeviceValues states(GetParam(), 2 * 8, 0);
  const DeviceVector<float> pooled = Run(states, 8, {0, 2}, {{ATTENDANT_CUDA_POOL_MEAN, 1, 8, 0}});
  for (size_t j = 0; j < 8; ++j) EXPECT_EQ(pooled[j], 0);
}

}  // namespace
}  // namespace attendant::cuda
