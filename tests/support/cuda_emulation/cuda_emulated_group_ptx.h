// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_emulated_ptx.h>

#include <array>
#include <type_traits>

// The twins of kernels/cuda/kernels/group_ptx.cuh's instructions, by the PTX ISA's definitions. A
// warp computes its 16 rows of a group's 64 by itself.
namespace attendant::cuda {
namespace ptx_twin {

// The number at a place of a matrix whose rows of kRowBytes are permuted: bits 4 to 6 of an
// address, for rows of 64 bytes bits 4 and 5, change by the bits that are three above them.
template <typename T, int kRowBytes>
float Permuted(uint32_t matrix, int row, int column) {
  const uint32_t dense = matrix + static_cast<uint32_t>(row * kRowBytes + 2 * column);
  const uint32_t place = dense ^ (dense >> 3 & (kRowBytes == 128 ? 0x70u : 0x30u));
  uint16_t bits;
  std::memcpy(&bits, cuda_emulation::SharedBytes16(place / 16 * 16) + place % 16, 2);
  return ToFloat(T{bits});
}

// One lane's part of a matmul; of `a` the registers, or an address.
struct GroupMatmul {
  float (*d)[4];
  int blocks;  // of eight columns
  std::array<uint32_t, 4> a;
  uint32_t a_address, b;
  int warp;  // of the group
  bool add;
};

// D [16, 8 blocks] (+)= A [16, 16] B [16, 8 blocks], all of them given by functions of row and
// column.
template <typename A, typename B>
void Compute(const std::array<GroupMatmul, 32>& lanes, A a, B b) {
  for (int lane = 0; lane < 32; ++lane) {
    const GroupMatmul& matmul = lanes[static_cast<size_t>(lane)];
    for (int i = 0; i < 4 * matmul.blocks; ++i) {
      const int row = lane / 4 + (i % 4 >= 2 ? 8 : 0);
      const int column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += a(row, k) * b(k, column);
      float& d = matmul.d[i / 4][i % 4];
      d = matmul.add ? d + sum : sum;
    }
  }
}

template <typename T, int kRowBytes, bool kRows>
void Issue(void* const (&operands)[32]) {
  std::array<GroupMatmul, 32> lanes;
  for (size_t i = 0; i < 32; ++i) lanes[i] = *static_cast<const GroupMatmul*>(operands[i]);
  cuda_emulation::IssueMatmul([lanes] {
    const GroupMatmul& first = lanes[0];
    if constexpr (kRows) {
      Compute(
          lanes,
          [&](int row, int k) {
            return Permuted<T, kRowBytes>(first.a_address, 16 * first.warp + row, k);
          },
          [&](int k, int column) { return Permuted<T, kRowBytes>(first.b, column, k); });
    } else {
      Compute(
          lanes,
          [&](int row, int k) {
            const GroupMatmul& owner = lanes[static_cast<size_t>(row % 8 * 4 + k % 8 / 2)];
            return Half<T>(owner.a[static_cast<size_t>(row / 8 + k / 8 * 2)], k % 2);
          },
          [&](int k, int column) { return Permuted<T, kRowBytes>(first.b, k, column); });
    }
  });
}

}  // namespace ptx_twin

// Tests choose which device it is.
template <typename Call>
void WithGroupMatmuls(Call call) {
  if (cuda_emulation::HasGroupMatmuls()) {
    call(std::true_type());
  } else {
    call(std::false_type());
  }
}

inline void PublishCopies() { cuda_emulation::PublishCopies(); }

inline void FenceMatmuls() {
  cuda_emulation::WithWarp("wgmma.fence", nullptr, [](void* const(&)[32]) {});
}

template <int kBlocks>
void WaitForMatmuls(float (&)[kBlocks][4]) {
  cuda_emulation::WithWarp("wgmma.wait_group", nullptr,
                           [](void* const(&)[32]) { cuda_emulation::FinishMatmuls(); });
}

template <typename T, int kRowBytes>
void MultiplyRows(float (&d)[8][4], uint32_t a, uint32_t b, bool add) {
  ptx_twin::GroupMatmul matmul = {d, 8, {}, a, b, static_cast<int>(threadIdx.x) / 32 % 4, add};
  cuda_emulation::WithWarp("wgmma of rows", &matmul, &ptx_twin::Issue<T, kRowBytes, true>);
}

template <typename T, int kRowBytes, int kFirst, int kBlocks>
void MultiplyColumns(float (&d)[kBlocks][4], const uint32_t (&a)[4], uint32_t b) {
  static_assert(kFirst + kRowBytes / 16 <= kBlocks);
  ptx_twin::GroupMatmul matmul = {d + kFirst, kRowBytes / 16, {a[0], a[1], a[2], a[3]}, 0, b, 0,
                                  true};
  cuda_emulation::WithWarp("wgmma of columns", &matmul, &ptx_twin::Issue<T, kRowBytes, false>);
}

}  // namespace attendant::cuda
