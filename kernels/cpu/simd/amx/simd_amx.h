// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx512_bf16.h"

// Operations on 16-float vectors that only kernels with AMX tiles need; amx_tiles.h has the tiles.

namespace attendant::cpu {
namespace avx512 {

inline constexpr int64_t kTile = 16;  // rows of a tile, and its 4-byte columns

// The lanes that are infinite or not a number.
ATTENDANT_INLINE Mask NotFinite(F32 v) { return _mm512_fpclass_ps_mask(v, 0x99); }

ATTENDANT_INLINE Mask IsZero(F32 v) {
  return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_EQ_OQ);
}
// The lanes that are not in [least, most].
ATTENDANT_INLINE Mask OutOfRange(F32 v, float least, float most) {
  return _mm512_cmp_ps_mask(v, Set(least), _CMP_NGE_UQ) |
         _mm512_cmp_ps_mask(v, Set(most), _CMP_NLE_UQ);
}

// 32 bf16 of two rows: lane i of `left` is (a[i], b[i]), of `right` (a[16 + i], b[16 + i]).
ATTENDANT_INLINE void InterleavePairs(F32 a, F32 b, F32* left, F32* right) {
  const __m512i low = _mm512_unpacklo_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b));
  const __m512i high = _mm512_unpackhi_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b));
  // Their 128-bit blocks are columns 0, 8, 16, 24 and 4, 12, 20, 28 on.
  const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  *left = _mm512_castsi512_ps(_mm512_permutex2var_epi64(low, first, high));
  *right = _mm512_castsi512_ps(_mm512_permutex2var_epi64(low, second, high));
}

// 32 values, rounded to nearest.
ATTENDANT_INLINE Bf16Pairs RoundToPairs(F32 first, F32 second) {
  return (Bf16Pairs)_mm512_cvtne2ps_pbh(second, first);
}

// 64 bytes of which the first `count` are those at `from`, and the rest 0.
ATTENDANT_INLINE void CopyTileRow(const void* from, int64_t count, void* to) {
  const __mmask64 mask = count < 64 ? (__mmask64{1} << count) - 1 : ~__mmask64{0};
  _mm512_storeu_si512(to, _mm512_maskz_loadu_epi8(mask, from));
}

}  // namespace avx512
}  // namespace attendant::cpu
