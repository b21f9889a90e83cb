// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/runtime/number_types.h"

// Matmuls of a group of four warps (wgmma), which sm_90a alone has. They read matrices from shared
// memory and run asynchronously: from FenceMatmuls to WaitForMatmuls their accumulators may not be
// touched. As in ptx.cuh, tests on the CPU have a twin of each instruction.
#ifndef __CUDACC__
#include <cuda_emulated_group_ptx.h>
#else
namespace attendant::cuda {

// call(std::true_type()) in code for devices that have these matmuls, else call(std::false_type()).
template <typename Call>
__device__ __forceinline__ void WithGroupMatmuls(Call call) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  call(std::true_type());
#else
  call(std::false_type());
#endif
}
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kGroupMatmuls = true;
#else
inline constexpr bool kGroupMatmuls = false;
#endif

// Lets later matmuls see what this thread's copies, once waited for, brought into shared memory; of
// the other threads' copies after a barrier.
__device__ __forceinline__ void PublishCopies() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// Before the first of several matmuls: the registers that they use are ready.
__device__ __forceinline__ void FenceMatmuls() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
// Ends the matmuls issued so far, which add to `accumulators`. (Naming these keeps the compiler
// from reading them earlier.)
template <int kBlocks>
__device__ __forceinline__ void WaitForMatmuls(float (&accumulators)[kBlocks][4]) {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(accumulators[block][i])::"memory");
  }
}

// A matrix of 16-bit numbers with rows of kRowBytes, 64 or 128, whose 16-byte chunks are permuted
// as Tile (attention_tile.h) has it: groups of eight rows follow one another.
template <int kRowBytes>
__device__ __forceinline__ uint64_t MatrixDescriptor(uint32_t address) {
  static_assert(kRowBytes == 64 || kRowBytes == 128);
  constexpr uint64_t kPermutation = kRowBytes == 128 ? 1 : 2;
  constexpr uint64_t kGroupBytes = 8 * kRowBytes;
  return (address & 0x3ffff) >> 4 | uint64_t{1} << 16 | kGroupBytes >> 4 << 32 | kPermutation << 62;
}

#define ATTENDANT_BLOCK(d, i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define ATTENDANT_BLOCKS_4(d, i)                                               \
  ATTENDANT_BLOCK(d, i), ATTENDANT_BLOCK(d, i + 1), ATTENDANT_BLOCK(d, i + 2), \
      ATTENDANT_BLOCK(d, i + 3)
#define ATTENDANT_REGISTERS_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define ATTENDANT_REGISTERS_32 \
  ATTENDANT_REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"

// d [64, 64] = a [64, 16] b^T, b [64, 16], added to d if `add`. Row 16 w + r of d is in the group's
// warp w, in d as in MultiplyAccumulate (ptx.cuh), eight columns after another. a and b begin at
// addresses of shared memory, see MatrixDescriptor.
#define ATTENDANT_MULTIPLY_ROWS(type)                                                              \
  asm volatile(                                                                                    \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"                                             \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" ATTENDANT_REGISTERS_32      \
      "}, %32, %33, add, 1, 1, 0, 0;\n}\n"                                                         \
      : ATTENDANT_BLOCKS_4(d, 0), ATTENDANT_BLOCKS_4(d, 4)                                         \
      : "l"(MatrixDescriptor<kRowBytes>(a)), "l"(MatrixDescriptor<kRowBytes>(b)), "r"(add ? 1 : 0) \
      : "memory")
template <typename T, int kRowBytes>
__device__ __forceinline__ void MultiplyRows(float (&d)[8][4], uint32_t a, uint32_t b, bool add) {
  if constexpr (std::is_same_v<T, F16>) {
    ATTENDANT_MULTIPLY_ROWS("f16");
  } else {
    ATTENDANT_MULTIPLY_ROWS("bf16");
  }
}

// d [64, kRowBytes / 2] += a [64, 16] b, b [16, kRowBytes / 2]: a in registers as in
// MultiplyAccumulate, b from shared memory; d are the blocks from `first` on.
#define ATTENDANT_MULTIPLY_COLUMNS_64(type)                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                       \
               " {" ATTENDANT_REGISTERS_32 "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;\n"            \
               : ATTENDANT_BLOCKS_4(d, kFirst), ATTENDANT_BLOCKS_4(d, kFirst + 4)                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(MatrixDescriptor<kRowBytes>(b)) \
               : "memory")
#define ATTENDANT_MULTIPLY_COLUMNS_32(type)                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                       \
               " {" ATTENDANT_REGISTERS_16 "}, {%16,%17,%18,%19}, %20, 1, 1, 1, 1;\n"            \
               : ATTENDANT_BLOCKS_4(d, kFirst)                                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(MatrixDescriptor<kRowBytes>(b)) \
               : "memory")
template <typename T, int kRowBytes, int kFirst, int kBlocks>
__device__ __forceinline__ void MultiplyColumns(float (&d)[kBlocks][4], const uint32_t (&a)[4],
                                                uint32_t b) {
  constexpr bool kF16 = std::is_same_v<T, F16>;
  if constexpr (kRowBytes == 64 && kF16) {
    ATTENDANT_MULTIPLY_COLUMNS_32("f16");
  } else if constexpr (kRowBytes == 64) {
    ATTENDANT_MULTIPLY_COLUMNS_32("bf16");
  } else if constexpr (kF16) {
    ATTENDANT_MULTIPLY_COLUMNS_64("f16");
  } else {
    ATTENDANT_MULTIPLY_COLUMNS_64("bf16");
  }
}

#undef ATTENDANT_MULTIPLY_COLUMNS_32
#undef ATTENDANT_MULTIPLY_COLUMNS_64
#undef ATTENDANT_MULTIPLY_ROWS
#undef ATTENDANT_REGISTERS_32
#undef ATTENDANT_REGISTERS_16
#undef ATTENDANT_BLOCKS_4
#undef ATTENDANT_BLOCK

}  // namespace attendant::cuda
#endif
