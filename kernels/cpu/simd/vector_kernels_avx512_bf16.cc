// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/simd_avx512_bf16.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {
namespace avx512 {
namespace {
#include "kernels/cpu/simd/vector_kernels.inc"
}  // namespace
}  // namespace avx512

const VectorKernels kAvx512Bf16Kernels = avx512::MakeVectorKernels("avx512_bf16");

namespace {

// AMX, which oneDNN uses, multiplies 16- and 8-bit numbers several times as fast.
constexpr VectorKernels MakeAmxKernels() {
  VectorKernels kernels = avx512::MakeVectorKernels("amx");
  kernels.bf16_matmul = {};
  kernels.int8_matmul = {};
  return kernels;
}

}  // namespace

const VectorKernels kAmxKernels = MakeAmxKernels();

}  // namespace attendant::cpu
