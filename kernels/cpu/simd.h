// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

// The vector operations that kernels/cpu/vector_kernels.inc is written in, for the instruction set
// that the including file is compiled for. Everything is inlined into that file's own namespace and
// nothing of the standard library is used: a function emitted here and picked by the linker for the
// whole program would carry AVX-512 to machines that lack it.

namespace attendant::cpu {

#if defined(__AVX512F__)
namespace avx512 {

using F32 = __m512;
using Mask = __mmask16;
inline constexpr int64_t kLanes = 16;

// The register tile of a product: 24 accumulators of 32 registers.
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 4;

#define ATTENDANT_INLINE static inline __attribute__((always_inline))

ATTENDANT_INLINE Mask FirstLanes(int64_t count) { return static_cast<Mask>((1u << count) - 1); }
ATTENDANT_INLINE F32 Load(const float* p) { return _mm512_loadu_ps(p); }
ATTENDANT_INLINE F32 Load(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
ATTENDANT_INLINE void Store(float* p, F32 v) { _mm512_storeu_ps(p, v); }
ATTENDANT_INLINE void Store(float* p, F32 v, Mask mask) { _mm512_mask_storeu_ps(p, mask, v); }
ATTENDANT_INLINE F32 Set(float x) { return _mm512_set1_ps(x); }
ATTENDANT_INLINE F32 Select(Mask mask, F32 yes, F32 no) {
  return _mm512_mask_blend_ps(mask, no, yes);
}
ATTENDANT_INLINE F32 Add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
ATTENDANT_INLINE F32 Sub(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
ATTENDANT_INLINE F32 Mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
ATTENDANT_INLINE F32 Div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
ATTENDANT_INLINE F32 Fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
ATTENDANT_INLINE F32 Max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
ATTENDANT_INLINE F32 Min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
ATTENDANT_INLINE F32 Round(F32 a) { return _mm512_roundscale_ps(a, 8); }
// a * 2^n for a whole n.
ATTENDANT_INLINE F32 Scale(F32 a, F32 n) { return _mm512_scalef_ps(a, n); }
ATTENDANT_INLINE float Sum(F32 v) { return _mm512_reduce_add_ps(v); }
ATTENDANT_INLINE float Largest(F32 v) { return _mm512_reduce_max_ps(v); }
ATTENDANT_INLINE float Smallest(F32 v) { return _mm512_reduce_min_ps(v); }

ATTENDANT_INLINE F32 PairLow(F32 a, F32 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
ATTENDANT_INLINE F32 PairHigh(F32 a, F32 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
// rows[i] lane j <-> rows[j] lane i.
ATTENDANT_INLINE void Transpose(F32 (&rows)[kLanes]) {
  F32 a[kLanes], b[kLanes];
  for (int i = 0; i < 16; i += 2) {  // pairs of rows: 2 x 2 blocks
    a[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {  // 4 x 4 blocks: b[i + c] holds columns c, c + 4, c + 8, c + 12
    b[i] = PairLow(a[i], a[i + 2]);
    b[i + 1] = PairHigh(a[i], a[i + 2]);
    b[i + 2] = PairLow(a[i + 1], a[i + 3]);
    b[i + 3] = PairHigh(a[i + 1], a[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {  // 16 x 4: gather the blocks of one column
    const F32 even_top = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88);
    const F32 odd_top = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xdd);
    const F32 even_low = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88);
    const F32 odd_low = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_f32x4(even_top, even_low, 0x88);
    rows[4 + c] = _mm512_shuffle_f32x4(odd_top, odd_low, 0x88);
    rows[8 + c] = _mm512_shuffle_f32x4(even_top, even_low, 0xdd);
    rows[12 + c] = _mm512_shuffle_f32x4(odd_top, odd_low, 0xdd);
  }
}

// f32 of (sums - zero_point * column_sums), exact in 32 bits.
ATTENDANT_INLINE F32 LoadSums(const int32_t* sums, int32_t zero_point, const int32_t* column_sums,
                              Mask mask) {
  const __m512i correction = _mm512_mullo_epi32(_mm512_set1_epi32(zero_point),
                                                _mm512_maskz_loadu_epi32(mask, column_sums));
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_maskz_loadu_epi32(mask, sums), correction));
}
#if defined(__AVX512BF16__)
#define ATTENDANT_HAS_BF16_DOT 1

// 16 lanes of two bf16 each.
using Bf16Pairs = __m512bh;

ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v, Mask mask) {
  _mm256_mask_storeu_epi16(p, mask, (__m256i)_mm512_cvtneps_pbh(v));
}
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
ATTENDANT_INLINE F32 BitsAsF32(Bf16Pairs pairs) { return (F32)pairs; }
ATTENDANT_INLINE Bf16Pairs LoadPairs(const uint32_t* p) { return (Bf16Pairs)_mm512_loadu_si512(p); }
ATTENDANT_INLINE void StorePairs(uint32_t* p, Bf16Pairs v) { _mm512_storeu_si512(p, (__m512i)v); }
// Two consecutive values in every lane.
ATTENDANT_INLINE Bf16Pairs SetPair(const uint16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return (Bf16Pairs)_mm512_set1_epi32(pair);
}
// c + a.low * b.low + a.high * b.high in each lane.
ATTENDANT_INLINE F32 DotPairs(F32 c, Bf16Pairs a, Bf16Pairs b) { return _mm512_dpbf16_ps(c, a, b); }
#else
// Rounds to nearest, ties to even, for finite values.
ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v, Mask mask) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  _mm512_mask_cvtepi32_storeu_epi16(p, mask, _mm512_srli_epi32(rounded, 16));
}
#endif
// Rounds values in [0, 255].
ATTENDANT_INLINE void StoreU8(uint8_t* p, F32 v, Mask mask) {
  _mm512_mask_cvtusepi32_storeu_epi8(p, mask, _mm512_cvtps_epi32(v));
}

}  // namespace avx512

#elif defined(__AVX2__)
namespace avx2 {

using F32 = __m256;
using Mask = __m256i;
inline constexpr int64_t kLanes = 8;

// 12 accumulators of 16 registers.
inline constexpr int kTileRows = 4;
inline constexpr int kTileVectors = 3;

#define ATTENDANT_INLINE static inline __attribute__((always_inline))

ATTENDANT_INLINE Mask FirstLanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
ATTENDANT_INLINE F32 Load(const float* p) { return _mm256_loadu_ps(p); }
ATTENDANT_INLINE F32 Load(const float* p, Mask mask) { return _mm256_maskload_ps(p, mask); }
ATTENDANT_INLINE void Store(float* p, F32 v) { _mm256_storeu_ps(p, v); }
ATTENDANT_INLINE void Store(float* p, F32 v, Mask mask) { _mm256_maskstore_ps(p, mask, v); }
ATTENDANT_INLINE F32 Set(float x) { return _mm256_set1_ps(x); }
ATTENDANT_INLINE F32 Select(Mask mask, F32 yes, F32 no) {
  return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(mask));
}
ATTENDANT_INLINE F32 Add(F32 a, F32 b) { return _mm256_add_ps(a, b); }
ATTENDANT_INLINE F32 Sub(F32 a, F32 b) { return _mm256_sub_ps(a, b); }
ATTENDANT_INLINE F32 Mul(F32 a, F32 b) { return _mm256_mul_ps(a, b); }
ATTENDANT_INLINE F32 Div(F32 a, F32 b) { return _mm256_div_ps(a, b); }
ATTENDANT_INLINE F32 Fma(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
ATTENDANT_INLINE F32 Max(F32 a, F32 b) { return _mm256_max_ps(a, b); }
ATTENDANT_INLINE F32 Min(F32 a, F32 b) { return _mm256_min_ps(a, b); }
ATTENDANT_INLINE F32 Round(F32 a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// a * 2^n for a whole n >= -126; below that the answer is 0.
ATTENDANT_INLINE F32 Scale(F32 a, F32 n) {
  const F32 lowest = _mm256_set1_ps(-127.0f);
  const __m256i exponent = _mm256_cvtps_epi32(_mm256_max_ps(n, lowest));
  const __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(a, _mm256_castsi256_ps(bits));
}
ATTENDANT_INLINE float Sum(F32 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
ATTENDANT_INLINE float Largest(F32 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}
ATTENDANT_INLINE float Smallest(F32 v) { return -Largest(_mm256_sub_ps(_mm256_setzero_ps(), v)); }

// rows[i] lane j <-> rows[j] lane i.
ATTENDANT_INLINE void Transpose(F32 (&rows)[kLanes]) {
  F32 a[kLanes], b[kLanes];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {  // b[i + c] holds columns c and c + 4
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x20);
    rows[4 + c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x31);
  }
}

ATTENDANT_INLINE F32 LoadSums(const int32_t* sums, int32_t zero_point, const int32_t* column_sums,
                              Mask mask) {
  const __m256i correction =
      _mm256_mullo_epi32(_mm256_set1_epi32(zero_point), _mm256_maskload_epi32(column_sums, mask));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_maskload_epi32(sums, mask), correction));
}
ATTENDANT_INLINE int64_t CountLanes(Mask mask) {
  return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask))));
}
ATTENDANT_INLINE void StoreBf16(uint16_t* p, F32 v, Mask mask) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  alignas(32) uint32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_srli_epi32(rounded, 16));
  for (int64_t i = 0; i < CountLanes(mask); ++i) p[i] = static_cast<uint16_t>(lanes[i]);
}
ATTENDANT_INLINE void StoreU8(uint8_t* p, F32 v, Mask mask) {
  alignas(32) int32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_cvtps_epi32(v));
  for (int64_t i = 0; i < CountLanes(mask); ++i) p[i] = static_cast<uint8_t>(lanes[i]);
}

}  // namespace avx2
#endif

}  // namespace attendant::cpu
