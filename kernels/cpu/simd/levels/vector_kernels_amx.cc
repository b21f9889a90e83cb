// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/amx/amx_tiles.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {
namespace avx512 {
namespace {
#include "kernels/cpu/simd/vector_kernels.inc"

#include "kernels/cpu/simd/attention/amx_attention.inc"
#include "kernels/cpu/simd/attention/amx_packed_dots.inc"

#include "kernels/cpu/simd/amx/amx_matmul.inc"

constexpr VectorKernels MakeAmxKernels() {
  VectorKernels kernels = MakeVectorKernels("amx");
  kernels.attention_scratch_bytes = AmxAttentionScratchBytes;
  kernels.attention_bf16 = AmxAttention;
  kernels.bf16.attention = AmxAttention;
  kernels.int8.attention = AmxAttention;
  kernels.bf16.dots = kernels.int8.dots = kAmxDots;
  kernels.bf16_matmul = MakeAmxMatmulKernels<AmxBf16Operands, Bf16Format>();
  kernels.int8_matmul = MakeAmxMatmulKernels<AmxByteOperands, F32Format>();
  return kernels;
}

}  // namespace
}  // namespace avx512

const VectorKernels kAmxKernels = avx512::MakeAmxKernels();

}  // namespace attendant::cpu
