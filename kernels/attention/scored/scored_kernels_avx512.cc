// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/scored/scored_kernels.h"
#include "kernels/cpu/simd/levels/simd_avx512_formats.h"

namespace attendant::attention {
namespace avx512 {
namespace {

using namespace attendant::cpu::avx512;  // NOLINT: the operations, in this file alone

constexpr int kScoreRows = 4;

// 14 bits and one step of Newton's.
ATTENDANT_INLINE F32 Reciprocal(F32 x) {
  const F32 near = _mm512_rcp14_ps(x);
  return Fma(near, _mm512_fnmadd_ps(x, near, Set(1.0f)), near);
}

ATTENDANT_INLINE Mask Equal(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }

ATTENDANT_INLINE F32 LoadBf16(const uint16_t* p, Mask mask) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

#include "kernels/attention/scored/scored_kernels.inc"

}  // namespace
}  // namespace avx512

const ScoredKernels kAvx512ScoredKernels = avx512::MakeScoredKernels("avx512");

}  // namespace attendant::attention
