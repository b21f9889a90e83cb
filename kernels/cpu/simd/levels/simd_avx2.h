// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/simd/levels/simd_macros.h"

// The vector operations that vector_kernels.inc is written in, on 8 floats.

namespace attendant::cpu {
namespace avx2 {

using F32 = __m256;
using S32 = __v8si;  // not __m256i: g++ 12 would copy it in every step of a tile
using Mask = __m256i;
inline constexpr int64_t kLanes = 8;

// 12 accumulators of 16 registers.
inline constexpr int kTileRows = 4;
inline constexpr int kTileVectors = 3;

// The value is another from here on, as far as the compiler knows: it neither makes it again nor
// keeps what it made of it before. With 16 registers the loop over a tile's sums needs that.
ATTENDANT_INLINE void Renew(F32& v) { asm("" : "+x"(v)); }
ATTENDANT_INLINE void Renew(int64_t& v) { asm("" : "+r"(v)); }

// Masks come from memory: made of the lanes' numbers they would keep one more register.
inline constexpr int32_t kLaneWindow[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};
// `count` is in [0, kLanes].
ATTENDANT_INLINE Mask FirstLanes(int64_t count) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLaneWindow + kLanes - count));
}
// Whether the compiler sees that the mask has all lanes.
ATTENDANT_INLINE bool IsKnownFull(Mask mask) {
  const bool full = mask[0] == -1 && mask[1] == -1 && mask[2] == -1 && mask[3] == -1;
  return __builtin_constant_p(full) && full;
}
ATTENDANT_INLINE bool IsFull(Mask mask) {
  return IsKnownFull(mask) || _mm256_movemask_ps(_mm256_castsi256_ps(mask)) == 0xff;
}
ATTENDANT_INLINE F32 Load(const float* p) { return _mm256_loadu_ps(p); }
ATTENDANT_INLINE F32 Load(const float* p, Mask mask) {
  return IsKnownFull(mask) ? Load(p) : _mm256_maskload_ps(p, mask);
}
ATTENDANT_INLINE void Store(float* p, F32 v) { _mm256_storeu_ps(p, v); }
// vmaskmovps takes 12 cycles on Zen 3, whatever the mask.
ATTENDANT_INLINE void Store(float* p, F32 v, Mask mask) {
  if (IsFull(mask)) return Store(p, v);
  _mm256_maskstore_ps(p, mask, v);
}
ATTENDANT_INLINE F32 ToF32(S32 v) { return _mm256_cvtepi32_ps((__m256i)v); }
ATTENDANT_INLINE F32 S32AsF32(S32 v) { return _mm256_castsi256_ps((__m256i)v); }
ATTENDANT_INLINE S32 F32AsS32(F32 v) { return (S32)_mm256_castps_si256(v); }
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
// a - floor(a), 0 for -inf; `whole` for ScaleFloor, which multiplies with 2^floor(a), or 0 below
// 2^-126. For a < 128.
ATTENDANT_INLINE F32 SplitFloor(F32 a, F32* whole) {
  const F32 clamped = _mm256_max_ps(_mm256_set1_ps(-127.0f), a);  // of NaN: NaN
  *whole = _mm256_floor_ps(clamped);
  return _mm256_sub_ps(clamped, *whole);
}
ATTENDANT_INLINE F32 ScaleFloor(F32 a, F32 whole) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127));
  return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
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

// Lane r: what is left when all lanes of rows[r] are combined, in the same order whatever r is. For
// up to 4 rows; lanes from `count` on mean nothing.
template <int count, F32 (*combine)(F32, F32)>
ATTENDANT_INLINE F32 CombineRows(const F32* rows) {
  const F32 a = rows[0], b = count > 1 ? rows[1] : a, c = count > 2 ? rows[2] : a,
            d = count > 3 ? rows[3] : a;
  const F32 ab = combine(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  const F32 cd = combine(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  const F32 quads = combine(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  return combine(quads, _mm256_permute2f128_ps(quads, quads, 0x01));
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

}  // namespace avx2
}  // namespace attendant::cpu
