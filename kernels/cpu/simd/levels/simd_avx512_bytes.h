// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx512_formats.h"

// For matmuls of 8-bit numbers without VNNI besides: as simd_avx2_bytes.h.

namespace attendant::cpu {
namespace avx512 {

// c + a[0] * b[0] + a[1] * b[1] in each lane: a and b two s16.
ATTENDANT_INLINE __m512i DotWords(__m512i c, __m512i a, __m512i b) {
  return _mm512_add_epi32(c, _mm512_madd_epi16(a, b));
}
// c + a[0] * b[0] + ... + a[3] * b[3] in each lane: c is s32, a four u8, b four s8. Exact, but for
// sums beyond 32 bits: the even and the odd values are widened to 16 bits.
ATTENDANT_INLINE S32 DotBytes(S32 c, F32 a, F32 b) {
  const __m512i x = _mm512_castps_si512(a), w = _mm512_castps_si512(b);
  const __m512i even = DotWords((__m512i)c, _mm512_and_si512(x, _mm512_set1_epi16(0xff)),
                                _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8));
  return (S32)DotWords(even, _mm512_srli_epi16(x, 8), _mm512_srai_epi16(w, 8));
}
// As DotBytes, in fewer instructions. REQUIRES: the products of no two neighbours, at 2 i and
// 2 i + 1, come to more than 16 bits hold.
ATTENDANT_INLINE S32 DotPairedBytes(S32 c, F32 a, F32 b) {
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b));
  return (S32)DotWords((__m512i)c, pairs, _mm512_set1_epi16(1));
}
// Byte i of every 16 is the one that order[i] says.
ATTENDANT_INLINE F32 ShuffleBytes(F32 v, F32 order) {
  return _mm512_castsi512_ps(
      _mm512_shuffle_epi8(_mm512_castps_si512(v), _mm512_castps_si512(order)));
}

}  // namespace avx512
}  // namespace attendant::cpu
