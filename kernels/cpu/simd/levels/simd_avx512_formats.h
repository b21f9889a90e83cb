// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx512.h"

// Numbers of other formats in memory, f32 in registers.

namespace attendant::cpu {
namespace avx512 {

// The lanes below `count` whose byte is not 0.
ATTENDANT_INLINE Mask NonzeroBytes(const uint8_t* p, int64_t count) {
  const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(count), p);
  return _mm_test_epi8_mask(bytes, bytes);
}
// bf16 widened, zero from `count` values on.
ATTENDANT_INLINE F32 LoadBf16(const uint16_t* p, int64_t count) {
  const Mask mask = FirstLanes(count < kLanes ? count : kLanes);
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
ATTENDANT_INLINE F32 LoadS32(const int32_t* p, Mask mask) {
  return _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(mask, p));
}
// Rounded to nearest, ties to even; of finite values.
ATTENDANT_INLINE __m256i ToBf16(F32 v) {
#if defined(__AVX512BF16__)
  return (__m256i)_mm512_cvtneps_pbh(v);
#else
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
#endif
}
ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), ToBf16(v));
}
ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v, Mask mask) {
  _mm256_mask_storeu_epi16(p, mask, ToBf16(v));
}
// Rounds values from -0.5 on, those above 255 to 255.
ATTENDANT_INLINE void StoreU8(uint8_t* p, F32 v, Mask mask) {
  _mm512_mask_cvtusepi32_storeu_epi8(p, mask, _mm512_cvtps_epi32(v));
}

}  // namespace avx512
}  // namespace attendant::cpu
