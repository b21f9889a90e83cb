// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx512_vnni.h"

// For attention besides: dot products of pairs of bf16, summed in f32.
#define ATTENDANT_HAS_BF16_DOT 1

namespace attendant::cpu {
namespace avx512 {

// 16 lanes of two bf16 each.
using Bf16Pairs = __m512bh;

// Lane i: (low, high) = (even[i], odd[i]), zero from `even_count` and `odd_count` values on.
ATTENDANT_INLINE Bf16Pairs Interleave(const uint16_t* even, int64_t even_count, const uint16_t* odd,
                                      int64_t odd_count) {
  const Mask low_mask = FirstLanes(even_count < kLanes ? even_count : kLanes);
  const Mask high_mask = FirstLanes(odd_count < kLanes ? odd_count : kLanes);
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(low_mask, even));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(high_mask, odd));
  return (Bf16Pairs)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}
// 32 consecutive values as 16 pairs, zero from `count` values on.
ATTENDANT_INLINE Bf16Pairs LoadPairs(const uint16_t* p, int64_t count) {
  const __mmask32 mask = count < 2 * kLanes ? (__mmask32{1} << count) - 1 : ~__mmask32{0};
  return (Bf16Pairs)_mm512_maskz_loadu_epi16(mask, p);
}
ATTENDANT_INLINE F32 BitsAsF32(Bf16Pairs pairs) {
  return _mm512_castsi512_ps((__m512i)pairs);
}
ATTENDANT_INLINE Bf16Pairs BitsAsPairs(F32 bits) {
  return (Bf16Pairs)_mm512_castps_si512(bits);
}
// c + a.low * b.low + a.high * b.high in each lane.
ATTENDANT_INLINE F32 DotPairs(F32 c, Bf16Pairs a, Bf16Pairs b) { return _mm512_dpbf16_ps(c, a, b); }

}  // namespace avx512
}  // namespace attendant::cpu
