// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/levels/simd_avx2.h"

// Numbers of other formats in memory, f32 in registers.

namespace attendant::cpu {
namespace avx2 {

// The lanes below `count` whose byte is not 0.
ATTENDANT_INLINE Mask NonzeroBytes(const uint8_t* p, int64_t count) {
  uint8_t bytes[kLanes] = {};
  if (count >= kLanes) {
    __builtin_memcpy(bytes, p, kLanes);
  } else {
    for (int64_t i = 0; i < count; ++i) bytes[i] = p[i];
  }
  const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  return _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(packed), _mm256_setzero_si256());
}
// bf16 widened, zero from `count` values on.
ATTENDANT_INLINE F32 LoadBf16(const uint16_t* p, int64_t count) {
  uint16_t values[kLanes] = {};
  if (count >= kLanes) {
    __builtin_memcpy(values, p, sizeof(values));
  } else {
    for (int64_t i = 0; i < count; ++i) values[i] = p[i];
  }
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(packed), 16));
}

ATTENDANT_INLINE F32 LoadS32(const int32_t* p, Mask mask) {
  return _mm256_cvtepi32_ps(_mm256_castps_si256(Load(reinterpret_cast<const float*>(p), mask)));
}
ATTENDANT_INLINE int64_t CountLanes(Mask mask) {
  return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask))));
}
// Rounded to nearest, ties to even; of finite values.
ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i high = _mm256_srli_epi32(rounded, 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}
ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v, Mask mask) {
  if (IsFull(mask)) return StoreBf16(p, v);
  uint16_t lanes[kLanes];
  StoreBf16(lanes, v);
  for (int64_t i = 0; i < CountLanes(mask); ++i) p[i] = lanes[i];
}
// Rounds values from -0.5 on, those above 255 to 255.
ATTENDANT_INLINE void StoreU8(uint8_t* p, F32 v, Mask mask) {
  const __m256i rounded = _mm256_cvtps_epi32(v);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
  const __m128i packed = _mm_packus_epi16(words, words);
  if (IsFull(mask)) return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), packed);
  uint8_t bytes[kLanes];
  _mm_storel_epi64(reinterpret_cast<__m128i*>(bytes), packed);
  for (int64_t i = 0; i < CountLanes(mask); ++i) p[i] = bytes[i];
}

}  // namespace avx2
}  // namespace attendant::cpu
