// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx512_formats.h"

// For matmuls of 8-bit numbers besides, without VNNI: as simd_avx2_bytes.h.

namespace attendant::cpu {
namespace avx512 {

ATTENDANT_INLINE F32 DotBytes(F32 c, F32 a, F32 b) {
  const __m512i x = _mm512_castps_si512(a), w = _mm512_castps_si512(b);
  const __m512i even = _mm512_madd_epi16(_mm512_and_si512(x, _mm512_set1_epi16(0xff)),
                                         _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8));
  const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(w, 8));
  const __m512i sum = _mm512_add_epi32(_mm512_castps_si512(c), even);
  return _mm512_castsi512_ps(_mm512_add_epi32(sum, odd));
}

}  // namespace avx512
}  // namespace attendant::cpu
