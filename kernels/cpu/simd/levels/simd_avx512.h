// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/simd/levels/simd_macros.h"

// The vector operations that vector_kernels.inc is written in, on 16 floats.

namespace attendant::cpu {
namespace avx512 {

using F32 = __m512;
using S32 = __v16si;  // not __m512i: g++ 12 would copy it in every step of a tile
using Mask = __mmask16;
inline constexpr int64_t kLanes = 16;

// The register tile of a matmul: 24 accumulators of 32 registers.
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 4;

// As on AVX2, where it matters; 32 registers are enough.
template <typename T>
ATTENDANT_INLINE void Renew(T&) {}

// `count` is in [0, kLanes].
ATTENDANT_INLINE Mask FirstLanes(int64_t count) { return static_cast<Mask>((1u << count) - 1); }
ATTENDANT_INLINE F32 Load(const float* p) { return _mm512_loadu_ps(p); }
ATTENDANT_INLINE F32 Load(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
ATTENDANT_INLINE void Store(float* p, F32 v) { _mm512_storeu_ps(p, v); }
ATTENDANT_INLINE void Store(float* p, F32 v, Mask mask) { _mm512_mask_storeu_ps(p, mask, v); }
ATTENDANT_INLINE F32 ToF32(S32 v) { return _mm512_cvtepi32_ps((__m512i)v); }
ATTENDANT_INLINE F32 S32AsF32(S32 v) { return _mm512_castsi512_ps((__m512i)v); }
ATTENDANT_INLINE S32 F32AsS32(F32 v) { return (S32)_mm512_castps_si512(v); }
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
// a - floor(a), 0 for -inf; `whole` for ScaleFloor, which multiplies with 2^floor(a).
ATTENDANT_INLINE F32 SplitFloor(F32 a, F32* whole) {
  *whole = a;
  return _mm512_reduce_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
ATTENDANT_INLINE F32 ScaleFloor(F32 a, F32 whole) { return _mm512_scalef_ps(a, whole); }
ATTENDANT_INLINE float Sum(F32 v) { return _mm512_reduce_add_ps(v); }
ATTENDANT_INLINE float Largest(F32 v) { return _mm512_reduce_max_ps(v); }
ATTENDANT_INLINE float Smallest(F32 v) { return _mm512_reduce_min_ps(v); }

ATTENDANT_INLINE F32 PairLow(F32 a, F32 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
ATTENDANT_INLINE F32 PairHigh(F32 a, F32 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
// Lane r: what is left when all lanes of rows[r] are combined, in the same order whatever r is. For
// up to 8 rows; lanes from `count` on mean nothing.
template <int count, F32 (*combine)(F32, F32)>
ATTENDANT_INLINE F32 CombineRows(const F32* rows) {
  F32 quads[2];  // of 4 rows each, which the 128-bit blocks hold side by side
  for (int i = 0; i < 2; ++i) {
    const F32 *a = rows + (4 * i < count ? 4 * i : 0), *b = 4 * i + 1 < count ? a + 1 : a,
              *c = 4 * i + 2 < count ? a + 2 : a, *d = 4 * i + 3 < count ? a + 3 : a;
    const F32 ab = combine(_mm512_unpacklo_ps(*a, *b), _mm512_unpackhi_ps(*a, *b));
    const F32 cd = combine(_mm512_unpacklo_ps(*c, *d), _mm512_unpackhi_ps(*c, *d));
    quads[i] = combine(PairLow(ab, cd), PairHigh(ab, cd));
  }
  const F32 halves = combine(_mm512_shuffle_f32x4(quads[0], quads[1], 0x88),
                             _mm512_shuffle_f32x4(quads[0], quads[1], 0xdd));
  return combine(_mm512_shuffle_f32x4(halves, halves, 0x08),
                 _mm512_shuffle_f32x4(halves, halves, 0x0d));
}
template <int count>
ATTENDANT_INLINE F32 LargestOfRows(const F32* rows) {
  return CombineRows<count, Max>(rows);
}
template <int count>
ATTENDANT_INLINE F32 SumOfRows(const F32* rows) {
  return CombineRows<count, Add>(rows);
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

}  // namespace avx512
}  // namespace attendant::cpu
