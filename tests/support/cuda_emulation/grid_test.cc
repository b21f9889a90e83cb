// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_emulation/grid.h"

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/kernels/ptx.cuh"
#include "tests/support/cuda_emulation/run_block.h"

namespace attendant::cuda_emulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GridTest, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> runs(3 * 2 * 64, 0);
  RunGrid({3, 2, 1}, {32, 2, 1}, 0, [&runs] {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    ++runs[block * 64 + threadIdx.y * blockDim.x + threadIdx.x];
  });
  EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
  EXPECT_TRUE(TakeFaults().empty());
}

TEST(GridTest, SharedMemoryBeginsAsNaNAndIsExchangedAtBarriers) {
  for (bool descending : {false, true}) {
    std::vector<float> before(128), after(128);
    const auto faults = RunBlock(128, 128 * sizeof(float),
                                 [&] {
                                   auto* shared = reinterpret_cast<float*>(SharedMemory());
                                   before[threadIdx.x] = shared[threadIdx.x];
                                   __syncthreads();
                                   shared[threadIdx.x] = static_cast<float>(threadIdx.x);
                                   __syncthreads();
                                   after[threadIdx.x] = shared[127 - threadIdx.x];
                                 },
                                 {.descending = descending});
    EXPECT_TRUE(faults.empty());
    for (size_t i = 0; i < 128; ++i) {
      EXPECT_TRUE(std::isnan(before[i]));
      EXPECT_EQ(after[i], static_cast<float>(127 - i));
    }
  }
}

TEST(GridTest, AMissingBarrierShowsInOneOfTheOrders) {
  int wrong = 0;
  for (bool descending : {false, true}) {
    std::vector<float> seen(64);
    RunBlock(64, 64 * sizeof(float),
             [&] {
               auto* shared = reinterpret_cast<float*>(SharedMemory());
               shared[threadIdx.x] = 1;
               seen[threadIdx.x] = shared[63 - threadIdx.x];  // no barrier
             },
             {.descending = descending});
    for (float value : seen) wrong += std::isnan(value) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 64);  // half of them in each order
}

TEST(GridTest, ShufflesExchangeWithinAWarp) {
  std::vector<int> swapped(64), first(64);
  EXPECT_TRUE(RunBlock(64, 0, [&] {
                const auto thread = static_cast<int>(threadIdx.x);
                swapped[threadIdx.x] = __shfl_xor_sync(0xffffffffu, thread, 5);
                first[threadIdx.x] = __shfl_sync(0xffffffffu, thread, 3);
              }).empty());
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(swapped[static_cast<size_t>(i)], i ^ 5);
    EXPECT_EQ(first[static_cast<size_t>(i)], i / 32 * 32 + 3);
  }
}

TEST(GridTest, ABarrierThatSomeNeverReachIsAFault) {
  const auto faults = RunBlock(64, 0, [] {
    if (threadIdx.x >= 10) __syncthreads();
  });
  EXPECT_THAT(faults, ElementsAre(HasSubstr("54 wait at a barrier and 10 have ended")));
}

TEST(GridTest, AnInstructionThatSomeLanesSkipIsAFault) {
  const auto faults = RunBlock(32, 0, [] {
    if (threadIdx.x != 7) __syncwarp();
  });
  EXPECT_THAT(faults, ElementsAre(HasSubstr("31 lanes of a warp wait at __syncwarp")));
}

TEST(GridTest, LanesAtDifferentInstructionsAreAFault) {
  const auto faults = RunBlock(32, 0, [] {
    if (threadIdx.x < 16) {
      __syncwarp();
    } else {
      __shfl_sync(0xffffffffu, 0, 0);
    }
  });
  EXPECT_THAT(faults, ElementsAre(HasSubstr("__syncwarp and at __shfl_sync")));
}

TEST(GridTest, SharedMemoryHasBounds) {
  for (uint32_t address : {48u, 56u, 8u, 0xfffffff0u}) {
    const auto faults = RunBlock(32, 63, [&] { cuda::CopyAsync16(address, nullptr, false); });
    EXPECT_THAT(faults, ElementsAre(HasSubstr("of 63 bytes of shared memory"))) << address;
  }
  EXPECT_TRUE(RunBlock(32, 64, [] { cuda::CopyAsync16(48, nullptr, false); }).empty());
}

TEST(GridTest, CopiesAreFromAlignedMemory) {
  alignas(16) const uint32_t source[8] = {};
  EXPECT_TRUE(RunBlock(32, 64, [&] { cuda::CopyAsync16(0, source + 4, true); }).empty());
  EXPECT_THAT(RunBlock(32, 64, [&] { cuda::CopyAsync16(0, source + 2, true); }),
              ElementsAre(HasSubstr("not aligned")));
}

TEST(GridTest, ACopyIsThereWhenItWasWaitedFor) {
  alignas(16) const uint32_t source[4] = {1, 2, 3, 4};
  for (bool early : {false, true}) {
    uint32_t unwaited = 0, one_under_way = 0, waited = 0, zeros = 1;
    RunBlock(32, 64,
             [&] {
               if (threadIdx.x != 0) return;
               const auto* shared = reinterpret_cast<const uint32_t*>(SharedMemory());
               cuda::CopyAsync16(0, source, true);
               cuda::CopyAsyncCommit();
               cuda::CopyAsync16(16, source, true);
               cuda::CopyAsync16(32, source, false);
               cuda::CopyAsyncCommit();
               unwaited = shared[1];
               cuda::CopyAsyncWait<1>();
               one_under_way = shared[5];
               waited = shared[1];
               cuda::CopyAsyncWait<0>();
               EXPECT_EQ(shared[5], 2u);
               zeros = shared[8];
             },
             {.early_copies = early});
    EXPECT_EQ(unwaited, early ? 2u : 0xffffffffu);
    EXPECT_EQ(one_under_way, early ? 2u : 0xffffffffu);
    EXPECT_EQ(waited, 2u);
    EXPECT_EQ(zeros, 0u);
  }
}

// Matrix m has 1000 m + 10 row + column; NVIDIA's own table of where elements go (CUTLASS,
// Copy_Traits of SM75_U32x4_LDSM_N and SM75_U16x8_LDSM_T) is: lane 4 r + c, register m, half h has
// row r, column 2 c + h, or transposed row 2 c + h, column r.
TEST(GridTest, MatrixLoadsPlaceElementsAsTheInstructionDoes) {
  for (bool transposed : {false, true}) {
    uint32_t registers[32][4] = {};
    EXPECT_TRUE(RunBlock(32, 4 * 8 * 16, [&] {
                  auto* shared = reinterpret_cast<uint16_t*>(SharedMemory());
                  const unsigned lane = threadIdx.x;
                  for (unsigned column = 0; column < 8; ++column) {
                    shared[lane * 8 + column] =
                        static_cast<uint16_t>(1000 * (lane / 8) + 10 * (lane % 8) + column);
                  }
                  __syncwarp();
                  transposed ? cuda::LoadMatricesTransposed(registers[lane], lane * 16)
                             : cuda::LoadMatrices(registers[lane], lane * 16);
                }).empty());
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned m = 0; m < 4; ++m) {
        for (unsigned h = 0; h < 2; ++h) {
          const unsigned row = transposed ? 2 * (lane % 4) + h : lane / 4;
          const unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + h;
          EXPECT_EQ(registers[lane][m] >> (16 * h) & 0xffffu, 1000 * m + 10 * row + column);
        }
      }
    }
  }
}

TEST(GridTest, BankConflictsOfMatrixLoadsAreCounted) {
  const auto conflicts = [](uint32_t row_bytes) {
    TakeStatistics();
    RunBlock(32, 32 * row_bytes, [&] {
      uint32_t registers[4];
      cuda::LoadMatrices(registers, threadIdx.x * row_bytes);
    });
    const KernelStatistics statistics = TakeStatistics();
    EXPECT_EQ(statistics.matrix_loads, 4);
    return statistics.matrix_load_conflicts;
  };
  EXPECT_EQ(conflicts(16), 0);
  EXPECT_EQ(conflicts(144), 0);
  EXPECT_EQ(conflicts(32), 4 * 1);
  EXPECT_EQ(conflicts(64), 4 * 3);
  EXPECT_EQ(conflicts(128), 4 * 7);
}

// Where the matmul's elements are, as CUTLASS writes it (MMA_Traits of
// SM80_16x8x16_F32BF16BF16F32_TN): an index into the column-major matrix from a lane and an
// element.
int IndexOfA(int lane, int i) {
  return lane % 4 * 32 + lane / 4 + i % 2 * 16 + i / 2 % 2 * 8 + i / 4 * 128;
}
int IndexOfB(int lane, int i) { return lane % 4 * 16 + lane / 4 + i % 2 * 8 + i / 2 * 64; }
int IndexOfC(int lane, int i) { return lane % 4 * 32 + lane / 4 + i % 2 * 16 + i / 2 * 8; }

template <typename T>
void ExpectMatmul() {
  // Small integers, so that every sum is exact. A [16, 16] column-major, B [8, 16] with index
  // column + 8 k, C [16, 8] column-major.
  std::mt19937 random(7);
  std::vector<float> a(16 * 16), b(16 * 8), c(16 * 8);
  for (auto* matrix : {&a, &b, &c}) {
    for (float& value : *matrix) value = static_cast<float>(static_cast<int>(random() % 17) - 8);
  }
  std::vector<float> d(16 * 8);
  const auto at = [](const std::vector<float>& matrix, int index) {
    return static_cast<uint32_t>(Convert<T>(matrix[static_cast<size_t>(index)]).bits);
  };
  EXPECT_TRUE(RunBlock(32, 0, [&] {
                const auto lane = static_cast<int>(threadIdx.x);
                uint32_t left[4], right[2];
                float sums[4];
                for (int i = 0; i < 4; ++i) {
                  left[i] = at(a, IndexOfA(lane, 2 * i)) | at(a, IndexOfA(lane, 2 * i + 1)) << 16;
                  sums[i] = c[static_cast<size_t>(IndexOfC(lane, i))];
                }
                for (int i = 0; i < 2; ++i) {
                  right[i] = at(b, IndexOfB(lane, 2 * i)) | at(b, IndexOfB(lane, 2 * i + 1)) << 16;
                }
                cuda::MultiplyAccumulate<T>(sums, left, right[0], right[1]);
                for (int i = 0; i < 4; ++i) d[static_cast<size_t>(IndexOfC(lane, i))] = sums[i];
              }).empty());
  for (size_t m = 0; m < 16; ++m) {
    for (size_t n = 0; n < 8; ++n) {
      float expected = c[n * 16 + m];
      for (size_t k = 0; k < 16; ++k) expected += a[k * 16 + m] * b[k * 8 + n];
      EXPECT_EQ(d[n * 16 + m], expected) << m << " " << n;
    }
  }
}

TEST(GridTest, MatmulsAreOfTheElementsThatTheInstructionTakes) {
  ExpectMatmul<cuda::Bf16>();
  ExpectMatmul<cuda::F16>();
}

__global__ void WriteOne(int* value) { *value = 1; }

TEST(GridTest, LaunchesAreCheckedAsTheRuntimeDoes) {
  const auto launch = [](unsigned blocks, unsigned threads, size_t shared_bytes) {
    cudaLaunchConfig_t config = {};
    config.gridDim.x = blocks;
    config.blockDim.x = threads;
    config.dynamicSmemBytes = shared_bytes;
    int value = 0;
    const cudaError_t error = cudaLaunchKernelEx(&config, &WriteOne, &value);
    cudaGetLastError();
    return error;
  };
  EXPECT_EQ(launch(0, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 0, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 1025, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 32, 49153), cudaErrorInvalidValue);
  const auto* function = reinterpret_cast<const void*>(&WriteOne);
  const auto allow = [&](int bytes) {
    return cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(allow(228 << 10), cudaErrorInvalidValue);
  cudaGetLastError();
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(allow(49153), cudaSuccess);
  int value = 0;
  cudaLaunchConfig_t config = {};
  config.dynamicSmemBytes = 49153;
  config.stream = stream;
  EXPECT_EQ(cudaLaunchKernelEx(&config, &WriteOne, &value), cudaSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace attendant::cuda_emulation
