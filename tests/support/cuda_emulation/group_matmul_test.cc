// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/kernels/group_ptx.cuh"
#include "kernels/cuda/kernels/ptx.cuh"
#include "tests/support/cuda_emulation/run_block.h"

namespace attendant::cuda_emulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A permuted matrix's number in shared memory: chunk c of row r is at place c ^ (r mod 8), for rows
// of 64 bytes at c ^ (r / 2 mod 4).
template <typename T, int kRowBytes>
void Put(uint32_t matrix, size_t row, size_t column, float value) {
  const size_t place = column / 8 ^ (kRowBytes == 128 ? row % 8 : row / 2 % 4);
  const T number = Convert<T>(value);
  std::memcpy(SharedMemory() + matrix + row * kRowBytes + place * 16 + column % 8 * 2, &number, 2);
}

// A group of 128 threads computes d = a b^T + left c from a [64, 16] and b [64, 16], which begin
// `from` columns within their rows, left [64, 16] in registers and c [16, kRowBytes / 2].
template <typename T, int kRowBytes>
void ExpectGroupMatmuls(size_t from, KernelOptions options) {
  constexpr uint32_t kA = 0, kB = 64 * kRowBytes, kC = 2 * kB;
  std::mt19937 random(11);
  std::vector<float> a(64 * 16), b(64 * 16), left(64 * 16), c(16 * kRowBytes / 2), d(64 * 64, 0);
  for (auto* matrix : {&a, &b, &left, &c}) {
    for (float& value : *matrix) value = static_cast<float>(static_cast<int>(random() % 17) - 8);
  }
  options.group_matmuls = true;
  EXPECT_THAT(RunBlock(
                  128, kC + 16 * kRowBytes,
                  [&] {
                    if (threadIdx.x == 0) {
                      for (size_t i = 0; i < 64 * 16; ++i) {
                        Put<T, kRowBytes>(kA, i / 16, from + i % 16, a[i]);
                        Put<T, kRowBytes>(kB, i / 16, from + i % 16, b[i]);
                      }
                      for (size_t i = 0; i < c.size(); ++i) {
                        Put<T, kRowBytes>(kC, i / (kRowBytes / 2), i % (kRowBytes / 2), c[i]);
                      }
                    }
                    __syncthreads();
                    const size_t lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16 + lane / 4;
                    float sums[8][4] = {};
                    uint32_t registers[4];
                    for (size_t i = 0; i < 4; ++i) {
                      const size_t at = (first + i % 2 * 8) * 16 + lane % 4 * 2 + i / 2 * 8;
                      registers[i] = Convert<T>(left[at]).bits |
                                     static_cast<uint32_t>(Convert<T>(left[at + 1]).bits) << 16;
                    }
                    cuda::FenceMatmuls();
                    const auto skipped = static_cast<uint32_t>(2 * from);
                    cuda::MultiplyRows<T, kRowBytes>(sums, kA + skipped, kB + skipped, false);
                    cuda::MultiplyColumns<T, kRowBytes, 0>(sums, registers, kC);
                    cuda::WaitForMatmuls(sums);
                    for (size_t i = 0; i < 32; ++i) {
                      const size_t row = first + i % 4 / 2 * 8;
                      d[row * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i / 4][i % 4];
                    }
                  },
                  options),
              ElementsAre());
  for (size_t row = 0; row < 64; ++row) {
    for (size_t column = 0; column < 64; ++column) {
      float expected = 0;
      for (size_t k = 0; k < 16; ++k) expected += a[row * 16 + k] * b[column * 16 + k];
      for (size_t k = 0; k < 16 && column < kRowBytes / 2; ++k) {
        expected += left[row * 16 + k] * c[k * (kRowBytes / 2) + column];
      }
      ASSERT_EQ(d[row * 64 + column], expected) << row << " " << column;
    }
  }
}

TEST(GroupMatmulTest, MatmulsAreOfTheElementsThatTheInstructionTakes) {
  for (const bool early : {false, true}) {
    for (const size_t from : {size_t{0}, size_t{16}}) {
      ExpectGroupMatmuls<cuda::Bf16, 128>(from, {.early_copies = early});
      ExpectGroupMatmuls<cuda::F16, 64>(from, {.descending = true, .early_copies = early});
    }
    ExpectGroupMatmuls<cuda::F16, 128>(48, {.early_copies = early});
  }
}

TEST(GroupMatmulTest, MatmulsMustBeWaitedFor) {
  const auto multiply = [](bool wait) {
    return RunBlock(128, 8192, [=] {
      float sums[8][4] = {};
      cuda::MultiplyRows<cuda::Bf16, 128>(sums, 0, 0, true);
      EXPECT_EQ(sums[0][0], 0);  // of NaN
      if (wait) cuda::WaitForMatmuls(sums);
      EXPECT_EQ(std::isnan(sums[0][0]), wait);
    });
  };
  EXPECT_THAT(multiply(true), ElementsAre());
  EXPECT_THAT(multiply(false), ElementsAre(HasSubstr("nobody waited for")));
}

TEST(GroupMatmulTest, MatmulsSeeCopiesThatWerePublished) {
  const auto multiply = [](bool publish) {
    return RunBlock(128, 8192, [=] {
      cuda::CopyAsync16(16 * threadIdx.x, nullptr, false);
      cuda::CopyAsyncCommit();
      cuda::CopyAsyncWait<0>();
      if (publish || threadIdx.x != 77) cuda::PublishCopies();
      __syncthreads();
      float sums[8][4];
      cuda::MultiplyRows<cuda::Bf16, 128>(sums, 0, 0, false);
      cuda::WaitForMatmuls(sums);
    });
  };
  EXPECT_THAT(multiply(true), ElementsAre());
  EXPECT_THAT(multiply(false), ElementsAre(HasSubstr("not published")));
}

}  // namespace
}  // namespace attendant::cuda_emulation
