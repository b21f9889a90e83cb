// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx2_formats.h"

// For matmuls of 8-bit numbers besides: dot products of four, summed in s32, all held as the bits
// of floats.

namespace attendant::cpu {
namespace avx2 {

// c + a[0] * b[0] + a[1] * b[1] in each lane: a and b two s16.
ATTENDANT_INLINE __m256i DotWords(__m256i c, __m256i a, __m256i b) {
  return _mm256_add_epi32(c, _mm256_madd_epi16(a, b));
}
// c + a[0] * b[0] + ... + a[3] * b[3] in each lane: c is s32, a four u8, b four s8. Exact, but for
// sums beyond 32 bits: the even and the odd values are widened to 16.
ATTENDANT_INLINE S32 DotBytes(S32 c, F32 a, F32 b) {
  const __m256i x = _mm256_castps_si256(a), w = _mm256_castps_si256(b);
  const __m256i even = DotWords((__m256i)c, _mm256_and_si256(x, _mm256_set1_epi16(0xff)),
                                _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
  return (S32)DotWords(even, _mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
}
// As DotBytes, in fewer instructions. REQUIRES: the products of no two neighbours, at 2 i and
// 2 i + 1, come to more than 16 bits hold.
ATTENDANT_INLINE S32 DotPairedBytes(S32 c, F32 a, F32 b) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b));
  return (S32)DotWords((__m256i)c, pairs, _mm256_set1_epi16(1));
}
// Byte i of every 16 is the one that order[i] says.
ATTENDANT_INLINE F32 ShuffleBytes(F32 v, F32 order) {
  return _mm256_castsi256_ps(
      _mm256_shuffle_epi8(_mm256_castps_si256(v), _mm256_castps_si256(order)));
}

}  // namespace avx2
}  // namespace attendant::cpu
