// SPDX-License-Identifier: Apache-2.0
#pragma once

#include_next <immintrin.h>

#include <cstdint>
#include <cstring>

#ifdef ATTENDANT_EMULATED_BF16
#define __AVX512BF16__ 1  // as -mavx512bf16 does
#endif

// The instructions of AVX-512 and AVX-VNNI that the kernels use (Intel SDM, volume 2), computed
// with AVX2. Code in namespace attendant finds these types and functions before the compiler's of
// the same names: compiled with this header, it runs on any processor that has AVX2 and FMA.

// Without optimization, those that contain a constant are macros.
#undef _mm512_cmp_ps_mask
#undef _mm512_fpclass_ps_mask
#undef _mm512_reduce_ps
#undef _mm512_roundscale_ps
#undef _mm512_shuffle_f32x4
#undef _mm512_slli_epi16
#undef _mm512_slli_epi32
#undef _mm512_srai_epi16
#undef _mm512_srli_epi16
#undef _mm512_srli_epi32

namespace attendant {

// Two vectors of AVX2: without AVX-512 g++ keeps a vector of 64 bytes in memory, and takes it apart
// lane by lane.
struct alignas(64) __m512 {
  __m256 low, high;
};
struct alignas(64) __m512d {
  __m256d low, high;
};
struct alignas(64) __m512i {
  __m256i low, high;
};
using __m512bh = __m512i;
using __v16si = __m512i;  // the compiler's type of its lanes

#define ATTENDANT_EMULATED static inline __attribute__((always_inline))

// ---- What AVX2 does with half as many lanes ----

#define ATTENDANT_BY_HALVES(name, type, f, args, low_args, high_args) \
  ATTENDANT_EMULATED type _mm512_##name args { return {_mm256_##f low_args, _mm256_##f high_args}; }
#define ATTENDANT_OF_ONE(name, to, from, f) \
  ATTENDANT_BY_HALVES(name, to, f, (from a), (a.low), (a.high))
#define ATTENDANT_OF_TWO(name, type) \
  ATTENDANT_BY_HALVES(name, type, name, (type a, type b), (a.low, b.low), (a.high, b.high))
#define ATTENDANT_OF_THREE(name)                                                                 \
  ATTENDANT_BY_HALVES(name, __m512, name, (__m512 a, __m512 b, __m512 c), (a.low, b.low, c.low), \
                      (a.high, b.high, c.high))
#define ATTENDANT_SHIFT(name) \
  ATTENDANT_BY_HALVES(name, __m512i, name, (__m512i v, int n), (v.low, n), (v.high, n))

ATTENDANT_BY_HALVES(set1_ps, __m512, set1_ps, (float x), (x), (x))
ATTENDANT_BY_HALVES(setzero_ps, __m512, setzero_ps, (), (), ())
ATTENDANT_BY_HALVES(set1_epi16, __m512i, set1_epi16, (int16_t x), (x), (x))
ATTENDANT_BY_HALVES(set1_epi32, __m512i, set1_epi32, (int32_t x), (x), (x))
ATTENDANT_OF_ONE(castps_si512, __m512i, __m512, castps_si256)
ATTENDANT_OF_ONE(castsi512_ps, __m512, __m512i, castsi256_ps)
ATTENDANT_OF_ONE(castps_pd, __m512d, __m512, castps_pd)
ATTENDANT_OF_ONE(castpd_ps, __m512, __m512d, castpd_ps)
ATTENDANT_OF_ONE(cvtepi32_ps, __m512, __m512i, cvtepi32_ps)
ATTENDANT_OF_ONE(cvtps_epi32, __m512i, __m512, cvtps_epi32)
ATTENDANT_OF_TWO(add_ps, __m512)
ATTENDANT_OF_TWO(sub_ps, __m512)
ATTENDANT_OF_TWO(mul_ps, __m512)
ATTENDANT_OF_TWO(div_ps, __m512)
ATTENDANT_OF_TWO(max_ps, __m512)
ATTENDANT_OF_TWO(min_ps, __m512)
ATTENDANT_OF_THREE(fmadd_ps)
ATTENDANT_OF_THREE(fnmadd_ps)
ATTENDANT_OF_TWO(unpacklo_ps, __m512)
ATTENDANT_OF_TWO(unpackhi_ps, __m512)
ATTENDANT_OF_TWO(unpacklo_pd, __m512d)
ATTENDANT_OF_TWO(unpackhi_pd, __m512d)
ATTENDANT_OF_TWO(unpacklo_epi16, __m512i)
ATTENDANT_OF_TWO(unpackhi_epi16, __m512i)
ATTENDANT_OF_TWO(add_epi32, __m512i)
ATTENDANT_OF_TWO(madd_epi16, __m512i)
ATTENDANT_OF_TWO(maddubs_epi16, __m512i)
ATTENDANT_OF_TWO(shuffle_epi8, __m512i)
ATTENDANT_BY_HALVES(and_si512, __m512i, and_si256, (__m512i a, __m512i b), (a.low, b.low),
                    (a.high, b.high))
ATTENDANT_BY_HALVES(or_si512, __m512i, or_si256, (__m512i a, __m512i b), (a.low, b.low),
                    (a.high, b.high))
ATTENDANT_SHIFT(slli_epi16)
ATTENDANT_SHIFT(srli_epi16)
ATTENDANT_SHIFT(srai_epi16)
ATTENDANT_SHIFT(slli_epi32)
ATTENDANT_SHIFT(srli_epi32)

ATTENDANT_EMULATED __m512i _mm512_set_epi64(int64_t h, int64_t g, int64_t f, int64_t e, int64_t d,
                                            int64_t c, int64_t b, int64_t a) {
  return {_mm256_set_epi64x(d, c, b, a), _mm256_set_epi64x(h, g, f, e)};
}

// ---- Memory and masks ----

ATTENDANT_EMULATED __m512 _mm512_loadu_ps(const void* p) {
  const float* from = static_cast<const float*>(p);
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
ATTENDANT_EMULATED void _mm512_storeu_ps(void* p, __m512 v) {
  float* to = static_cast<float*>(p);
  _mm256_storeu_ps(to, v.low);
  _mm256_storeu_ps(to + 8, v.high);
}
ATTENDANT_EMULATED __m512i _mm512_load_si512(const void* p) {
  return _mm512_castps_si512(_mm512_loadu_ps(p));
}
ATTENDANT_EMULATED void _mm512_storeu_si512(void* p, __m512i v) {
  _mm512_storeu_ps(p, _mm512_castsi512_ps(v));
}
ATTENDANT_EMULATED void _mm512_store_si512(void* p, __m512i v) { _mm512_storeu_si512(p, v); }

// All bits of lane i are bit i of the mask.
ATTENDANT_EMULATED __m256i EmulatedMask(unsigned mask) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask)), bits),
                            bits);
}
ATTENDANT_EMULATED __mmask16 EmulatedMaskOf(__m256i low, __m256i high) {
  return static_cast<__mmask16>(_mm256_movemask_ps(_mm256_castsi256_ps(low)) |
                                _mm256_movemask_ps(_mm256_castsi256_ps(high)) << 8);
}
ATTENDANT_EMULATED __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
  return {_mm256_blendv_ps(a.low, b.low, _mm256_castsi256_ps(EmulatedMask(mask))),
          _mm256_blendv_ps(a.high, b.high, _mm256_castsi256_ps(EmulatedMask(mask >> 8)))};
}
ATTENDANT_EMULATED __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const void* p) {
  const float* from = static_cast<const float*>(p);
  return {_mm256_maskload_ps(from, EmulatedMask(mask)),
          _mm256_maskload_ps(from + 8, EmulatedMask(mask >> 8))};
}
ATTENDANT_EMULATED void _mm512_mask_storeu_ps(void* p, __mmask16 mask, __m512 v) {
  float* to = static_cast<float*>(p);
  _mm256_maskstore_ps(to, EmulatedMask(mask), v.low);
  _mm256_maskstore_ps(to + 8, EmulatedMask(mask >> 8), v.high);
}
ATTENDANT_EMULATED __m512i _mm512_maskz_loadu_epi32(__mmask16 mask, const void* p) {
  return _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, p));
}
// Smaller lanes one by one: neither read nor written where the mask has no bit.
template <int size, int lanes>
__attribute__((noinline)) void EmulatedMaskedCopy(void* to, uint64_t mask, const void* from) {
  for (int i = 0; i < lanes; ++i) {
    if ((mask >> i & 1) == 0) continue;
    std::memcpy(static_cast<char*>(to) + i * size, static_cast<const char*>(from) + i * size, size);
  }
}
ATTENDANT_EMULATED __m512i _mm512_maskz_loadu_epi16(__mmask32 mask, const void* p) {
  alignas(64) char lanes[64] = {};
  EmulatedMaskedCopy<2, 32>(lanes, mask, p);
  return _mm512_load_si512(lanes);
}
ATTENDANT_EMULATED __m512i _mm512_maskz_loadu_epi8(__mmask64 mask, const void* p) {
  alignas(64) char lanes[64] = {};
  EmulatedMaskedCopy<1, 64>(lanes, mask, p);
  return _mm512_load_si512(lanes);
}
ATTENDANT_EMULATED __m256i _mm256_maskz_loadu_epi16(__mmask16 mask, const void* p) {
  if (mask == 0xffff) return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  __m256i lanes = _mm256_setzero_si256();
  EmulatedMaskedCopy<2, 16>(&lanes, mask, p);
  return lanes;
}
ATTENDANT_EMULATED void _mm256_mask_storeu_epi16(void* p, __mmask16 mask, __m256i v) {
  EmulatedMaskedCopy<2, 16>(p, mask, &v);
}
ATTENDANT_EMULATED __m128i _mm_maskz_loadu_epi8(__mmask16 mask, const void* p) {
  __m128i lanes = _mm_setzero_si128();
  EmulatedMaskedCopy<1, 16>(&lanes, mask, p);
  return lanes;
}
ATTENDANT_EMULATED __mmask16 _mm_test_epi8_mask(__m128i a, __m128i b) {
  const __m128i none = _mm_cmpeq_epi8(_mm_and_si128(a, b), _mm_setzero_si128());
  return static_cast<__mmask16>(~_mm_movemask_epi8(none));
}

// ---- Lanes of both halves ----

ATTENDANT_EMULATED __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int order) {
  const __m128 from[2][4] = {{_mm256_castps256_ps128(a.low), _mm256_extractf128_ps(a.low, 1),
                              _mm256_castps256_ps128(a.high), _mm256_extractf128_ps(a.high, 1)},
                             {_mm256_castps256_ps128(b.low), _mm256_extractf128_ps(b.low, 1),
                              _mm256_castps256_ps128(b.high), _mm256_extractf128_ps(b.high, 1)}};
  return {_mm256_set_m128(from[0][order >> 2 & 3], from[0][order & 3]),
          _mm256_set_m128(from[1][order >> 6 & 3], from[1][order >> 4 & 3])};
}
ATTENDANT_EMULATED __m512i _mm512_permutex2var_epi64(__m512i a, __m512i order, __m512i b) {
  int64_t from[16], at[8], to[8];
  _mm512_storeu_si512(from, a);
  _mm512_storeu_si512(from + 8, b);
  _mm512_storeu_si512(at, order);
  for (int i = 0; i < 8; ++i) to[i] = from[at[i] & 15];
  return _mm512_load_si512(to);
}
// In the order of the compilers' intrinsics: halves, until two lanes are left.
#define ATTENDANT_REDUCE(name)                                                           \
  ATTENDANT_EMULATED float _mm512_reduce_##name##_ps(__m512 v) {                         \
    const __m256 eight = _mm256_##name##_ps(v.high, v.low);                              \
    const __m128 four =                                                                  \
        _mm_##name##_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight)); \
    const __m128 two = _mm_##name##_ps(four, _mm_movehl_ps(four, four));                 \
    return _mm_cvtss_f32(_mm_##name##_ss(two, _mm_movehdup_ps(two)));                    \
  }
ATTENDANT_REDUCE(add)
ATTENDANT_REDUCE(max)
ATTENDANT_REDUCE(min)

// ---- f32 ----

ATTENDANT_EMULATED __m256i EmulatedCompare(__m256 a, __m256 b, int how) {
  switch (how) {
    case _CMP_EQ_OQ:
      return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
    case _CMP_NGE_UQ:
      return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_NGE_UQ));
    case _CMP_NLE_UQ:
      return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_NLE_UQ));
    default:
      __builtin_trap();
  }
}
ATTENDANT_EMULATED __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int how) {
  return EmulatedMaskOf(EmulatedCompare(a.low, b.low, how), EmulatedCompare(a.high, b.high, how));
}
// Infinities and NaN.
ATTENDANT_EMULATED __m256i EmulatedNotFinite(__m256 v) {
  const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(INT32_MAX));
  return _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f7fffff));
}
ATTENDANT_EMULATED __mmask16 _mm512_fpclass_ps_mask(__m512 v, int classes) {
  if (classes != 0x99) __builtin_trap();
  return EmulatedMaskOf(EmulatedNotFinite(v.low), EmulatedNotFinite(v.high));
}
ATTENDANT_EMULATED __m512 _mm512_roundscale_ps(__m512 v, int how) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  if (how != kNearest) __builtin_trap();
  return {_mm256_round_ps(v.low, kNearest), _mm256_round_ps(v.high, kNearest)};
}
// v - floor(v), of infinities 0.
ATTENDANT_EMULATED __m256 EmulatedFraction(__m256 v) {
  const __m256 fraction = _mm256_sub_ps(v, _mm256_floor_ps(v));
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
  const __m256 infinite = _mm256_cmp_ps(magnitude, _mm256_set1_ps(__builtin_inff()), _CMP_EQ_OQ);
  return _mm256_andnot_ps(infinite, fraction);
}
ATTENDANT_EMULATED __m512 _mm512_reduce_ps(__m512 v, int how) {
  if (how != (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)) __builtin_trap();
  return {EmulatedFraction(v.low), EmulatedFraction(v.high)};
}
// a * 2^floor(n), rounded once.
ATTENDANT_EMULATED __m128 EmulatedScale(__m128 a, __m128 n) {
  const __m128 most = _mm_set1_ps(1000), least = _mm_set1_ps(-1000);
  const __m128 floor = _mm_floor_ps(_mm_min_ps(_mm_max_ps(n, least), most));
  const __m256i exponent = _mm256_cvtepi32_epi64(_mm_cvtps_epi32(floor));
  const __m256i power = _mm256_slli_epi64(_mm256_add_epi64(exponent, _mm256_set1_epi64x(1023)), 52);
  const __m128 scaled =
      _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(a), _mm256_castsi256_pd(power)));
  return _mm_blendv_ps(scaled, n, _mm_cmpunord_ps(n, n));
}
ATTENDANT_EMULATED __m256 EmulatedScale(__m256 a, __m256 n) {
  return _mm256_set_m128(EmulatedScale(_mm256_extractf128_ps(a, 1), _mm256_extractf128_ps(n, 1)),
                         EmulatedScale(_mm256_castps256_ps128(a), _mm256_castps256_ps128(n)));
}
ATTENDANT_EMULATED __m512 _mm512_scalef_ps(__m512 a, __m512 n) {
  return {EmulatedScale(a.low, n.low), EmulatedScale(a.high, n.high)};
}
// 1 / v to 14 bits.
ATTENDANT_EMULATED __m512 _mm512_rcp14_ps(__m512 v) {
  const __m512 quotient = _mm512_div_ps(_mm512_set1_ps(1), v);
  const __m512i bits = _mm512_set1_epi32(static_cast<int32_t>(0xfffffe00));
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(quotient), bits));
}

// ---- Integers, and between formats ----

// The even and the odd bytes of each lane, widened.
ATTENDANT_EMULATED __m256i _mm256_dpbusd_avx_epi32(__m256i c, __m256i a, __m256i b) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(0xff)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
  return _mm256_add_epi32(c, _mm256_add_epi32(even, odd));
}
ATTENDANT_EMULATED __m512i _mm512_dpbusd_epi32(__m512i c, __m512i a, __m512i b) {
  return {_mm256_dpbusd_avx_epi32(c.low, a.low, b.low),
          _mm256_dpbusd_avx_epi32(c.high, a.high, b.high)};
}
ATTENDANT_EMULATED __m512i _mm512_cvtepu16_epi32(__m256i v) {
  return {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)),
          _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1))};
}
// The low 16 bits of each lane.
ATTENDANT_EMULATED __m256i _mm512_cvtepi32_epi16(__m512i v) {
  const __m512i bits = _mm512_and_si512(v, _mm512_set1_epi32(0xffff));
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(bits.low, bits.high), 0xd8);
}
// Values above 255 become 255.
ATTENDANT_EMULATED void _mm512_mask_cvtusepi32_storeu_epi8(void* p, __mmask16 mask, __m512i v) {
  const __m256i most = _mm256_set1_epi32(255);
  const __m256i words =
      _mm512_cvtepi32_epi16({_mm256_min_epu32(v.low, most), _mm256_min_epu32(v.high, most)});
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  if (mask == 0xffff) return _mm_storeu_si128(static_cast<__m128i*>(p), bytes);
  EmulatedMaskedCopy<1, 16>(p, mask, &bytes);
}
// To nearest, ties to even; denormals become zero, and NaN stays NaN.
ATTENDANT_EMULATED __m256i EmulatedBf16Of(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  const __m256 number =
      _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan);
  const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f800000));
  const __m256i denormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
  const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi32(INT32_MIN));
  return _mm256_srli_epi32(_mm256_blendv_epi8(_mm256_castps_si256(number), sign, denormal), 16);
}
ATTENDANT_EMULATED __m256i _mm512_cvtneps_pbh(__m512 v) {
  return _mm512_cvtepi32_epi16({EmulatedBf16Of(v.low), EmulatedBf16Of(v.high)});
}
ATTENDANT_EMULATED __m512bh _mm512_cvtne2ps_pbh(__m512 high, __m512 low) {
  return {_mm512_cvtneps_pbh(low), _mm512_cvtneps_pbh(high)};
}
// Denormals of a and b are zero.
ATTENDANT_EMULATED __m256i EmulatedNormalBf16(__m256i v) {
  const __m256i exponent = _mm256_and_si256(v, _mm256_set1_epi16(0x7f80));
  return _mm256_andnot_si256(_mm256_cmpeq_epi16(exponent, _mm256_setzero_si256()), v);
}
ATTENDANT_EMULATED __m256 EmulatedDotOfPairs(__m256 c, __m256i a, __m256i b) {
  const __m256i x = EmulatedNormalBf16(a), y = EmulatedNormalBf16(b);
  const __m256i high = _mm256_set1_epi32(static_cast<int32_t>(0xffff0000));
  const __m256 odd = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(x, high)),
                                     _mm256_castsi256_ps(_mm256_and_si256(y, high)), c);
  return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                         _mm256_castsi256_ps(_mm256_slli_epi32(y, 16)), odd);
}
ATTENDANT_EMULATED __m512 _mm512_dpbf16_ps(__m512 c, __m512bh a, __m512bh b) {
  return {EmulatedDotOfPairs(c.low, a.low, b.low), EmulatedDotOfPairs(c.high, a.high, b.high)};
}

#undef ATTENDANT_BY_HALVES
#undef ATTENDANT_EMULATED
#undef ATTENDANT_OF_ONE
#undef ATTENDANT_OF_THREE
#undef ATTENDANT_OF_TWO
#undef ATTENDANT_REDUCE
#undef ATTENDANT_SHIFT

}  // namespace attendant
