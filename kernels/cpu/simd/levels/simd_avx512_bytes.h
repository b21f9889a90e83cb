// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx512_formats.h"

// For matmuls of 8-bit numbers besides, without VNNI: as simd_avx2_bytes.h.

namespace attendant::cpu {
namespace avx512 {

inline constexpr bool kSumsPairsIn16Bits = true;

ATTENDANT_INLINE F32 DotBytes(F32 c, F32 a, F32 b) {
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b));
  const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(c), fours));
}

}  // namespace avx512
}  // namespace attendant::cpu
