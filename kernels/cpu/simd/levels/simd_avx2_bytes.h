// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx2_formats.h"

// For matmuls of 8-bit numbers besides: dot products of four, summed in s32.

namespace attendant::cpu {
namespace avx2 {

inline constexpr bool kSumsPairsIn16Bits = true;

// c + a[0] * b[0] + ... + a[3] * b[3] in each lane: c is s32, a four u8, b four s8, all held as the
// bits of floats. Exact where neighbours in b leave room for their products
// (MatmulKernels::pairs_in_16_bits), but for sums beyond 32 bits.
ATTENDANT_INLINE F32 DotBytes(F32 c, F32 a, F32 b) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b));
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(c), fours));
}

}  // namespace avx2
}  // namespace attendant::cpu
