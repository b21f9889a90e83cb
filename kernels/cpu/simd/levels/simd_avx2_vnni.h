// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx2_formats.h"

// For matmuls of 8-bit numbers besides: dot products of four, summed in s32.
#define ATTENDANT_HAS_BYTE_DOT 1

namespace attendant::cpu {
namespace avx2 {

// c + a[0] * b[0] + ... + a[3] * b[3] in each lane: c is s32; a, four u8, and b, four s8, are held
// as the bits of floats. Exact, but for sums beyond 32 bits.
ATTENDANT_INLINE S32 DotBytes(S32 c, F32 a, F32 b) {
  return (S32)_mm256_dpbusd_avx_epi32((__m256i)c, _mm256_castps_si256(a), _mm256_castps_si256(b));
}

}  // namespace avx2
}  // namespace attendant::cpu
