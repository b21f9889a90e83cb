// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/runtime/number_types.h"

// The instructions that C++ has no words for, from sm_80 on. Tests compile the kernels for the CPU,
// where each instruction has a twin.
#ifndef __CUDACC__
#include <cuda_emulated_ptx.h>
#else
namespace attendant::cuda {

// The block's dynamic shared memory.
__device__ __forceinline__ unsigned char* SharedMemory() {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  return shared_memory;
}

// Of a pointer into it; one row of 16 bytes is 16 higher.
__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Starts to copy 16 bytes into shared memory, zeros without reading if not `copy`. They are there
// for the thread that waited, and for others after a barrier.
__device__ __forceinline__ void CopyAsync16(uint32_t shared, const void* global, bool copy) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared),
               "l"(__cvta_generic_to_global(global)), "r"(copy ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void CopyAsyncCommit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Until at most kGroups of the committed groups are under way.
template <int kGroups>
__device__ __forceinline__ void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
}

// Four matrices [8, 8] of 16-bit numbers; lane 8 i + j gives the address of row j of matrix i.
// Register i of lane 4 r + c gets elements 2 c and 2 c + 1 of row r of matrix i, or of column r.
__device__ __forceinline__ void LoadMatrices(uint32_t (&registers)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void LoadMatricesTransposed(uint32_t (&registers)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(row)
               : "memory");
}

// d [16, 8] += a [16, 16] b [16, 8]; with lane = 4 g + t
//   d = {(g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)}
//   a = {(g, 2t..), (g + 8, 2t..), (g, 2t + 8..), (g + 8, 2t + 8..)}, two columns each
//   b0, b1 = rows 2t.. and 2t + 8.. of column g, two each
template <typename T>
__device__ __forceinline__ void MultiplyAccumulate(float (&d)[4], const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1);
template <>
__device__ __forceinline__ void MultiplyAccumulate<Bf16>(float (&d)[4], const uint32_t (&a)[4],
                                                         uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void MultiplyAccumulate<F16>(float (&d)[4], const uint32_t (&a)[4],
                                                        uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2^value to 2 units in the last place; denormal results are 0.
__device__ __forceinline__ float Exp2(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(value));
  return power;
}

}  // namespace attendant::cuda
#endif
