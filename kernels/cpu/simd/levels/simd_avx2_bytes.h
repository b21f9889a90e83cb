// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx2_formats.h"

// For matmuls of 8-bit numbers besides: dot products of four, summed in s32.

namespace attendant::cpu {
namespace avx2 {

// c + a[0] * b[0] + ... + a[3] * b[3] in each lane: c is s32, a four u8, b four s8, all held as the
// bits of floats. Exact, but for sums beyond 32 bits: the even and the odd values are widened to 16
// bits (of a once for all vectors, of b for all rows: the compiler finds what is common). What sums
// pairs of bytes in one step (vpmaddubsw) saturates at 16 bits.
//
// One core of Zen 3, GOP/s: this 131, vpmaddubsw 195; 97 in f32. Other exact ways: x widened in
// memory and weights on their way from there, in tiles of 6 x 8 columns, 151 (sums must be vectors
// of int for that: of __m256i, g++ 12 keeps them on the stack, 93). vpmaddubsw of |a - 128| and
// weights that take its sign, 1.12 times this, but 1.02 to 1.10 times in the engine, and columns
// must begin with 128 times the sum of their weights. Not exact: weights whose neighbours leave
// each other room in 16 bits took a mean cosine of 0.9982 to 0.9980 (all-mpnet-base-v2, the lowest
// from 0.994 to 0.988).
ATTENDANT_INLINE F32 DotBytes(F32 c, F32 a, F32 b) {
  const __m256i x = _mm256_castps_si256(a), w = _mm256_castps_si256(b);
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0xff)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
  const __m256i sum = _mm256_add_epi32(_mm256_castps_si256(c), even);
  return _mm256_castsi256_ps(_mm256_add_epi32(sum, odd));
}

}  // namespace avx2
}  // namespace attendant::cpu
