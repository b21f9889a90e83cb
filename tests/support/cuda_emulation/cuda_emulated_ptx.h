// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstring>

#include "kernels/cuda/runtime/number_types.h"
#include "tests/support/cuda_emulation/grid.h"

// The twins of kernels/cuda/kernels/ptx.cuh's instructions, by the PTX ISA's definitions.
namespace attendant::cuda {
namespace ptx_twin {

// A matrix of 8 rows of 8 numbers of 16 bits: lane 4 i + j gets elements 2 j and 2 j + 1 of row i,
// or, transposed, of column i. Addresses of four matrices' rows come from lanes 0-7, 8-15, 16-23
// and 24-31 (PTX ISA, ldmatrix).
struct MatrixLoad {
  uint32_t address;
  uint32_t (*registers)[4];
};

template <bool kTransposed>
void LoadMatrices(void* const (&operands)[32]) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint16_t elements[8][8];
    uint32_t addresses[8];
    for (int row = 0; row < 8; ++row) {
      addresses[row] = static_cast<const MatrixLoad*>(operands[8 * matrix + row])->address;
      std::memcpy(elements[row], cuda_emulation::SharedBytes16(addresses[row]), 16);
    }
    cuda_emulation::CountMatrixLoad(addresses);
    for (int lane = 0; lane < 32; ++lane) {
      const int i = lane / 4;
      const int j = lane % 4 * 2;
      const uint32_t low = kTransposed ? elements[j][i] : elements[i][j];
      const uint32_t high = kTransposed ? elements[j + 1][i] : elements[i][j + 1];
      (*static_cast<const MatrixLoad*>(operands[lane])->registers)[matrix] = high << 16 | low;
    }
  }
}

// D [16, 8] += A [16, 16] B [16, 8]. In terms of group = lane / 4 and place = lane % 4
// (PTX ISA, matrix fragments for mma.m16n8k16 with floating point type):
//   a_i (i < 8)  row group, or group + 8 where i & 2;  column 2 place + (i & 1), + 8 where i >= 4
//   b_i (i < 4)  row 2 place + (i & 1), + 8 where i >= 2;  column group
//   c_i (i < 4)  row group, or group + 8 where i >= 2;  column 2 place + (i & 1)
struct Matmul {
  float (*d)[4];
  const uint32_t (*a)[4];
  uint32_t b[2];
};

template <typename T>
float Half(uint32_t pair, int which) {
  return ToFloat(T{static_cast<uint16_t>(pair >> (16 * which))});
}

template <typename T>
void MultiplyAccumulate(void* const (&operands)[32]) {
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto* matmul = static_cast<const Matmul*>(operands[lane]);
    const int group = lane / 4;
    const int place = lane % 4;
    for (int i = 0; i < 8; ++i) {
      const int row = group + ((i & 2) != 0 ? 8 : 0);
      const int column = 2 * place + (i & 1) + (i >= 4 ? 8 : 0);
      a[row][column] = Half<T>((*matmul->a)[i / 2], i & 1);
    }
    for (int i = 0; i < 4; ++i) {
      b[2 * place + (i & 1) + (i >= 2 ? 8 : 0)][group] = Half<T>(matmul->b[i / 2], i & 1);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto* matmul = static_cast<const Matmul*>(operands[lane]);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + (i >= 2 ? 8 : 0);
      const int column = 2 * (lane % 4) + (i & 1);
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      (*matmul->d)[i] += sum;
    }
  }
}

}  // namespace ptx_twin

inline unsigned char* SharedMemory() { return cuda_emulation::SharedMemory(); }

inline uint32_t SharedAddress(const void* pointer) {
  const auto* bytes = static_cast<const unsigned char*>(pointer);
  return static_cast<uint32_t>(bytes - cuda_emulation::SharedMemory());
}

inline void CopyAsync16(uint32_t shared, const void* global, bool copy) {
  cuda_emulation::IssueCopy(shared, copy ? global : nullptr);
}
inline void CopyAsyncCommit() { cuda_emulation::CommitCopies(); }
template <int kGroups>
void CopyAsyncWait() {
  cuda_emulation::WaitForCopies(kGroups);
}

inline void LoadMatrices(uint32_t (&registers)[4], uint32_t row) {
  ptx_twin::MatrixLoad load = {row, &registers};
  cuda_emulation::WithWarp("ldmatrix", &load, &ptx_twin::LoadMatrices<false>);
}
inline void LoadMatricesTransposed(uint32_t (&registers)[4], uint32_t row) {
  ptx_twin::MatrixLoad load = {row, &registers};
  cuda_emulation::WithWarp("ldmatrix.trans", &load, &ptx_twin::LoadMatrices<true>);
}

template <typename T>
void MultiplyAccumulate(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  ptx_twin::Matmul matmul = {&d, &a, {b0, b1}};
  cuda_emulation::WithWarp("mma", &matmul, &ptx_twin::MultiplyAccumulate<T>);
}

inline float Exp2(float value) { return std::exp2(value); }

}  // namespace attendant::cuda
